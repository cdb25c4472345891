"""One valid object of each kind around pods that other controllers act on, as a user would write it."""

from __future__ import annotations

import base64
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Plain = dict[str, Any]
TEMPLATE: Plain = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
ONCE: Plain = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
SELECTOR: Plain = {"matchLabels": {"app": "x"}}


def signing_request(name: str = "system:node:a", groups: tuple[str, ...] = ("system:nodes",)) -> str:
    """A PEM request for a certificate, in base64."""
    key = ec.generate_private_key(ec.SECP256R1())
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject = x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, name)])
    made = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    return base64.b64encode(made.public_bytes(serialization.Encoding.PEM)).decode()


CSR: Plain = {
    "request": signing_request(), "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
    "usages": ["digital signature", "client auth"],
}  # fmt: skip
PARENT = {"resource": "services", "namespace": "default", "name": "kubernetes"}
BACKEND = {"service": {"name": "web", "port": {"number": 80}}}

NEIGHBOURS: dict[str, tuple[str, Plain]] = {
    "jobs": ("batch/v1 Job", {"spec": {"template": ONCE}}),
    "cronjobs": ("batch/v1 CronJob", {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": ONCE}}}}),
    "statefulsets": ("apps/v1 StatefulSet", {"spec": {"serviceName": "s", "selector": SELECTOR, "template": TEMPLATE}}),
    "controllerrevisions": ("apps/v1 ControllerRevision", {"data": {"spec": {}}, "revision": 1}),
    "replicationcontrollers": ("v1 ReplicationController", {"spec": {"template": TEMPLATE}}),
    "podtemplates": ("v1 PodTemplate", {"template": TEMPLATE}),
    "limitranges": ("v1 LimitRange", {"spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}}),
    "persistentvolumes": (
        "v1 PersistentVolume",
        {"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}}},
    ),
    "persistentvolumeclaims": (
        "v1 PersistentVolumeClaim",
        {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
    ),
    "poddisruptionbudgets": ("policy/v1 PodDisruptionBudget", {"spec": {"minAvailable": 1, "selector": SELECTOR}}),
    "runtimeclasses": ("node.k8s.io/v1 RuntimeClass", {"handler": "gvisor"}),
    "certificatesigningrequests": ("certificates.k8s.io/v1 CertificateSigningRequest", {"spec": CSR}),
    "storageclasses": ("storage.k8s.io/v1 StorageClass", {"provisioner": "example.com/disk"}),
    "volumeattachments": (
        "storage.k8s.io/v1 VolumeAttachment",
        {"spec": {"attacher": "d.example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}}},
    ),
    "volumeattributesclasses": (
        "storage.k8s.io/v1 VolumeAttributesClass", {"driverName": "d.example.com", "parameters": {"iops": "1"}},
    ),
    "csinodes": (
        "storage.k8s.io/v1 CSINode", {"spec": {"drivers": [{"name": "d.example.com", "nodeID": "n"}]}},
    ),
    "csidrivers": ("storage.k8s.io/v1 CSIDriver", {"spec": {}}),
    "csistoragecapacities": ("storage.k8s.io/v1 CSIStorageCapacity", {"storageClassName": "fast", "capacity": "1Gi"}),
    "endpointslices": (
        "discovery.k8s.io/v1 EndpointSlice", {"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}]},
    ),
    "horizontalpodautoscalers": (
        "autoscaling/v2 HorizontalPodAutoscaler",
        {"spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}},
    ),
    "ingresses": ("networking.k8s.io/v1 Ingress", {"spec": {"defaultBackend": BACKEND}}),
    "ingressclasses": ("networking.k8s.io/v1 IngressClass", {"spec": {"controller": "example.com/ingress"}}),
    "networkpolicies": ("networking.k8s.io/v1 NetworkPolicy", {"spec": {"podSelector": {}}}),
    "servicecidrs": ("networking.k8s.io/v1 ServiceCIDR", {"spec": {"cidrs": ["10.0.0.0/24"]}}),
    "ipaddresses": (
        "networking.k8s.io/v1 IPAddress", {"metadata": {"name": "10.0.0.1"}, "spec": {"parentRef": PARENT}},
    ),
    "flowschemas": (
        "flowcontrol.apiserver.k8s.io/v1 FlowSchema", {"spec": {"priorityLevelConfiguration": {"name": "exempt"}}},
    ),
    "prioritylevelconfigurations": (
        "flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration",
        {"spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}},
    ),
    "apiservices": (
        "apiregistration.k8s.io/v1 APIService",
        {
            "metadata": {"name": "v1.example.com"},
            "spec": {"group": "example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100},
        },
    ),
}  # fmt: skip


def neighbour(plural: str, **changes: Any) -> Plain:
    """An object of the kind, with parts replaced."""
    words, content = NEIGHBOURS[plural]
    api_version, kind = words.split()
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, **content, **changes}


def collection(plural: str, *, namespaced: bool = True) -> str:
    api_version = NEIGHBOURS[plural][0].split()[0]
    root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    return f"{root}/namespaces/default/{plural}" if namespaced else f"{root}/{plural}"
