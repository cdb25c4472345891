"""The kinds around pods and claims that every Kubernetes serves: batch, policy, storage, network, certificates.

Most are kept whole, and nothing but their metadata is read. Those with a `model` have controllers or admission here.
"""

from __future__ import annotations

from drakit.api.kind import STATUS_VERBS, Kind, Subresource
from drakit.api.objects import batch, certificates, policy, runtime

_ALL = ("all",)
_STATUS = Subresource("status")
_WITH_STATUS = (_STATUS,)
_SCALED = (Subresource("scale", STATUS_VERBS, "Scale", "autoscaling/v1"), _STATUS)
_STORAGE = "storage.k8s.io"
_NETWORK = "networking.k8s.io"
_FLOW = "flowcontrol.apiserver.k8s.io"

NEIGHBOURS: tuple[Kind, ...] = (
    Kind(group="batch", kind="Job", plural="jobs", categories=_ALL, subresources=_WITH_STATUS, model=batch.Job),
    Kind(
        group="batch", kind="CronJob", plural="cronjobs", short_names=("cj",), categories=_ALL,
        subresources=_WITH_STATUS, model=batch.CronJob,
    ),
    Kind(
        group="apps", kind="StatefulSet", plural="statefulsets", short_names=("sts",), categories=_ALL,
        subresources=_SCALED,
    ),
    Kind(
        group="", kind="ReplicationController", plural="replicationcontrollers", short_names=("rc",), categories=_ALL,
        subresources=_SCALED,
    ),
    Kind(group="", kind="PodTemplate", plural="podtemplates"),
    Kind(group="", kind="LimitRange", plural="limitranges", short_names=("limits",), model=policy.LimitRange),
    Kind(
        group="", kind="PersistentVolume", plural="persistentvolumes", namespaced=False, short_names=("pv",),
        subresources=_WITH_STATUS,
    ),
    Kind(
        group="", kind="PersistentVolumeClaim", plural="persistentvolumeclaims", short_names=("pvc",),
        subresources=_WITH_STATUS,
    ),
    Kind(
        group="policy", kind="PodDisruptionBudget", plural="poddisruptionbudgets", short_names=("pdb",),
        subresources=_WITH_STATUS, model=policy.PodDisruptionBudget,
    ),
    Kind(
        group="node.k8s.io", kind="RuntimeClass", plural="runtimeclasses", namespaced=False,
        model=runtime.RuntimeClass,
    ),
    Kind(
        group="certificates.k8s.io", kind="CertificateSigningRequest", plural="certificatesigningrequests",
        namespaced=False, short_names=("csr",), subresources=(Subresource("approval"), _STATUS),
        model=certificates.CertificateSigningRequest,
    ),
    Kind(group=_STORAGE, kind="StorageClass", plural="storageclasses", namespaced=False, short_names=("sc",)),
    Kind(
        group=_STORAGE, kind="VolumeAttachment", plural="volumeattachments", namespaced=False,
        subresources=_WITH_STATUS,
    ),
    Kind(
        group=_STORAGE, kind="VolumeAttributesClass", plural="volumeattributesclasses", namespaced=False,
        short_names=("vac",),
    ),
    Kind(group=_STORAGE, kind="CSINode", plural="csinodes", namespaced=False),
    Kind(group=_STORAGE, kind="CSIDriver", plural="csidrivers", namespaced=False),
    Kind(group=_STORAGE, kind="CSIStorageCapacity", plural="csistoragecapacities"),
    Kind(group="discovery.k8s.io", kind="EndpointSlice", plural="endpointslices"),
    Kind(
        group="autoscaling", kind="HorizontalPodAutoscaler", plural="horizontalpodautoscalers", versions=("v2", "v1"),
        internal="v2", short_names=("hpa",), categories=_ALL, subresources=_WITH_STATUS,
    ),
    Kind(group=_NETWORK, kind="Ingress", plural="ingresses", short_names=("ing",), subresources=_WITH_STATUS),
    Kind(group=_NETWORK, kind="IngressClass", plural="ingressclasses", namespaced=False),
    Kind(group=_NETWORK, kind="NetworkPolicy", plural="networkpolicies", short_names=("netpol",)),
    Kind(
        group=_NETWORK, kind="ServiceCIDR", plural="servicecidrs", namespaced=False, subresources=_WITH_STATUS,
    ),
    Kind(group=_NETWORK, kind="IPAddress", plural="ipaddresses", namespaced=False, short_names=("ip",)),
    Kind(group=_FLOW, kind="FlowSchema", plural="flowschemas", namespaced=False, subresources=_WITH_STATUS),
    Kind(
        group=_FLOW, kind="PriorityLevelConfiguration", plural="prioritylevelconfigurations", namespaced=False,
        subresources=_WITH_STATUS,
    ),
    Kind(
        group="apiregistration.k8s.io", kind="APIService", plural="apiservices", namespaced=False,
        categories=("api-extensions",), subresources=_WITH_STATUS,
    ),
)  # fmt: skip
