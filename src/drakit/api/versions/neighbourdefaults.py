"""Defaults of the kinds around pods that other controllers act on: batch, storage, network, limits.

In:  a document in the form that its shape completes, which may be changed.
Out: the same document with what Kubernetes fills in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from drakit.api.versions.podspecdefaults import Document, default_pod_spec, default_source, rounded

_MAX_INT32 = 2**31 - 1
_UTILIZATION = 80
_FLOW = "flowcontrol.apiserver.k8s.io/v1"


def _template(holder: Document) -> Document:
    template: Document = holder.setdefault("template", {})
    default_pod_spec(template.setdefault("spec", {}))
    return template


def _job(document: Document) -> None:
    spec = document.setdefault("spec", {})
    _template(spec)
    _job_parts(spec)
    _job_spec(spec)
    _labels_of_template(document, spec["template"])


def _job_spec(spec: Document) -> None:
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6 if spec.get("backoffLimitPerIndex") is None else _MAX_INT32)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "TerminatingOrFailed" if not spec.get("podFailurePolicy") else "Failed")
    spec.setdefault("manualSelector", False)


def _job_parts(spec: Document) -> None:
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            pattern["status"] = pattern.get("status") or "True"


def _labels_of_template(document: Document, template: Document) -> None:
    labels = (template.get("metadata") or {}).get("labels")
    if labels and not document["metadata"].get("labels"):
        document["metadata"]["labels"] = dict(labels)


def _cron_job(document: Document) -> None:
    spec = document.setdefault("spec", {})
    spec["concurrencyPolicy"] = spec.get("concurrencyPolicy") or "Allow"
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    inner = spec.setdefault("jobTemplate", {}).setdefault("spec", {})
    # The job's own defaults come when the job is made, not here.
    _template(inner)
    _job_parts(inner)


def _stateful_set(document: Document) -> None:
    spec = document.setdefault("spec", {})
    _template(spec)
    spec["podManagementPolicy"] = spec.get("podManagementPolicy") or "OrderedReady"
    strategy = spec.setdefault("updateStrategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and strategy.get("rollingUpdate") is not None:
        strategy["rollingUpdate"].setdefault("partition", 0)
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    for name in ("whenDeleted", "whenScaled"):
        retention[name] = retention.get(name) or "Retain"
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    for claim in spec.get("volumeClaimTemplates") or ():
        claim.update({"apiVersion": "v1", "kind": "PersistentVolumeClaim"})
        _volume_claim(claim)


def _replication_controller(document: Document) -> None:
    spec = document.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    if spec.get("template") is None:
        return
    template = _template(spec)
    labels = (template.get("metadata") or {}).get("labels")
    if labels and not spec.get("selector"):
        spec["selector"] = dict(labels)
    _labels_of_template(document, template)


def _pod_template(document: Document) -> None:
    _template(document)


def _limit_range(document: Document) -> None:
    for item in document.setdefault("spec", {}).get("limits") or ():
        for name in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
            if item.get(name):
                item[name] = rounded(item[name])
        if item.get("type") == "Container":
            # A default falls back to max; a request to that default, and then to min. So the default comes first.
            item["default"] = {**(item.get("max") or {}), **(item.get("default") or {})}
            asked = item.get("defaultRequest") or {}
            item["defaultRequest"] = {**(item.get("min") or {}), **item["default"], **asked}


def _volume(document: Document) -> None:
    spec = document.setdefault("spec", {})
    spec["persistentVolumeReclaimPolicy"] = spec.get("persistentVolumeReclaimPolicy") or "Retain"
    spec.setdefault("volumeMode", "Filesystem")
    if spec.get("capacity"):
        spec["capacity"] = rounded(spec["capacity"])
    default_source(spec)
    status = document.setdefault("status", {})
    status["phase"] = status.get("phase") or "Pending"


def _volume_claim(document: Document) -> None:
    document.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
    status = document.setdefault("status", {})
    status["phase"] = status.get("phase") or "Pending"


def _storage_class(document: Document) -> None:
    document.setdefault("reclaimPolicy", "Delete")
    document.setdefault("volumeBindingMode", "Immediate")


def _csi_driver(document: Document) -> None:
    spec = document.setdefault("spec", {})
    spec.setdefault("attachRequired", True)
    for name in ("podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"):
        spec.setdefault(name, False)
    spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def _network_policy(document: Document) -> None:
    spec = document.setdefault("spec", {})
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", *(["Egress"] if spec.get("egress") else [])]
    for rule in (*(spec.get("ingress") or ()), *(spec.get("egress") or ())):
        for port in rule.get("ports") or ():
            port.setdefault("protocol", "TCP")


def _ingress_class(document: Document) -> None:
    parameters = document.setdefault("spec", {}).get("parameters")
    if parameters is not None and not parameters.get("scope"):
        parameters["scope"] = "Cluster"


def _endpoint_slice(document: Document) -> None:
    for port in document.get("ports") or ():
        port.setdefault("name", "")
        port.setdefault("protocol", "TCP")


def _flow_schema(document: Document) -> None:
    spec = document.setdefault("spec", {})
    spec["matchingPrecedence"] = spec.get("matchingPrecedence") or 1000


def _priority_level(document: Document) -> None:
    spec = document.setdefault("spec", {})
    if (exempt := spec.get("exempt")) is not None:
        exempt.setdefault("nominalConcurrencyShares", 0)
        exempt.setdefault("lendablePercent", 0)
    if (limited := spec.get("limited")) is not None:
        if limited.get("nominalConcurrencyShares") is None:
            limited["nominalConcurrencyShares"] = 30
        limited.setdefault("lendablePercent", 0)
        queuing = (limited.get("limitResponse") or {}).get("queuing")
        if queuing is not None:
            for name, value in (("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)):
                queuing[name] = queuing.get(name) or value


def _api_service(document: Document) -> None:
    service = document.setdefault("spec", {}).get("service")
    if service is not None:
        service.setdefault("port", 443)


_SCALE_UP = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_SCALE_DOWN = {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}


def _autoscaler(document: Document) -> None:
    spec = document.setdefault("spec", {})
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": _UTILIZATION}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = spec.get("behavior")
    if behavior is not None:
        behavior["scaleUp"] = {**_SCALE_UP, **(behavior.get("scaleUp") or {})}
        behavior["scaleDown"] = {**_SCALE_DOWN, **(behavior.get("scaleDown") or {})}


LABELLED_BY_TEMPLATE = frozenset({("batch", "Job"), ("", "ReplicationController")})
"""Kinds whose metadata has defaults that depend on the spec."""
NEIGHBOUR_RULES: Mapping[tuple[Any, Any], Callable[[Document], None]] = {
    ("batch/v1", "Job"): _job,
    ("batch/v1", "CronJob"): _cron_job,
    ("apps/v1", "StatefulSet"): _stateful_set,
    ("v1", "ReplicationController"): _replication_controller,
    ("v1", "PodTemplate"): _pod_template,
    ("v1", "LimitRange"): _limit_range,
    ("v1", "PersistentVolume"): _volume,
    ("v1", "PersistentVolumeClaim"): _volume_claim,
    ("storage.k8s.io/v1", "StorageClass"): _storage_class,
    ("storage.k8s.io/v1", "CSIDriver"): _csi_driver,
    ("networking.k8s.io/v1", "NetworkPolicy"): _network_policy,
    ("networking.k8s.io/v1", "IngressClass"): _ingress_class,
    ("discovery.k8s.io/v1", "EndpointSlice"): _endpoint_slice,
    (_FLOW, "FlowSchema"): _flow_schema,
    (_FLOW, "PriorityLevelConfiguration"): _priority_level,
    ("apiregistration.k8s.io/v1", "APIService"): _api_service,
    ("autoscaling/v2", "HorizontalPodAutoscaler"): _autoscaler,
}
