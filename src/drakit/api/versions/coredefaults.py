"""Defaults of the kinds that are modelled in part, on their documents.

In:  a document in the form that its shape completes.
Out: the document with what Kubernetes fills in; the same one when nothing was missing. The input stays as it is.

Admission adds more to a pod (service account, priority, tolerations): that is the API server's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from drakit.api.footprint import container_limits, container_requests, is_pod_level
from drakit.api.objects.plain import from_plain
from drakit.api.objects.pods import Pod
from drakit.api.versions.neighbourdefaults import NEIGHBOUR_RULES
from drakit.api.versions.podspecdefaults import Document, containers_of, default_pod_spec, rounded

_RBAC = "rbac.authorization.k8s.io"
_HUGEPAGES = "hugepages-"


def default_document(document: Mapping[str, Any], *, has_spec_defaults: bool = False) -> Mapping[str, Any]:
    """Fill in the defaults of a document's kind. With `has_spec_defaults` the spec has them already."""
    if has_spec_defaults and document.get("kind") == "Pod":
        return _with_addresses(document)
    rule = _RULES.get((document.get("apiVersion"), document.get("kind")))
    if rule is None:
        return document
    changed: Document = msgspec.to_builtins(document)  # a copy down to the leaves
    rule(changed)
    return document if changed == document else changed


def _pod(pod: Document) -> None:
    spec = pod.setdefault("spec", {})
    # Containers first: the pod-level sums below count the requests that a container gets from its limits.
    for container in containers_of(spec, "initContainers", "containers"):
        _requests_from_limits(container.setdefault("resources", {}))
    _pod_level_resources(pod)
    spec.setdefault("enableServiceLinks", True)
    if spec.get("hostNetwork"):
        for port in _ports(spec):
            port.setdefault("hostPort", port.get("containerPort", 0))
    default_pod_spec(spec)
    _pod_addresses(pod.get("status", {}))


def _with_addresses(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    before = pod.get("status", {})
    status: Document = dict(before)
    _pod_addresses(status)
    return pod if status == before else {**pod, "status": status}


def _requests_from_limits(resources: Document) -> None:
    if limits := resources.get("limits"):
        resources["requests"] = {**limits, **resources.get("requests", {})}


def _pod_level_resources(pod: Document) -> None:
    """Complete the resources of a pod that has some at pod level. Limits of huge pages come from its containers. If it
    has limits, missing requests come from its containers, or else from the limits."""
    resources = pod["spec"].get("resources") or {}
    limits, requests = dict(resources.get("limits") or {}), dict(resources.get("requests") or {})
    if not limits and not requests:
        return
    view = from_plain(Pod, pod)
    for name, amount in container_limits(view).items():
        if name.startswith(_HUGEPAGES) and name not in requests:
            limits.setdefault(name, str(amount))
    if limits:
        for name, amount in container_requests(view).items():
            if is_pod_level(name) and not name.startswith(_HUGEPAGES):
                requests.setdefault(name, str(amount))
        requests = {name: limit for name, limit in limits.items() if is_pod_level(name)} | requests
    resources.update({name: each for name, each in (("limits", limits), ("requests", requests)) if each})


def _pod_addresses(status: Document) -> None:
    """Make `podIP` and `podIPs` agree. If they differ, `podIP` counts."""
    one, many = status.get("podIP"), status.get("podIPs")
    if one and (not many or many[0].get("ip") != one):
        status["podIPs"] = [{"ip": one}]
    elif many and not one:
        status["podIP"] = many[0].get("ip", "")


def _replica_set(document: Document) -> None:
    spec = document.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    default_pod_spec(spec.setdefault("template", {}).setdefault("spec", {}))


def _deployment(document: Document) -> None:
    _replica_set(document)
    spec = document["spec"]
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    strategy = spec.setdefault("strategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")


def _namespace(document: Document) -> None:
    if name := document["metadata"].get("name"):
        document["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name
    document.setdefault("status", {}).setdefault("phase", "Active")


def _node(document: Document) -> None:
    status = document.setdefault("status", {})
    for name in ("capacity", "allocatable"):
        if name in status:
            status[name] = rounded(status[name])
    if "capacity" in status:
        status.setdefault("allocatable", dict(status["capacity"]))


def _quota(document: Document) -> None:
    for part, name in (("spec", "hard"), ("status", "hard"), ("status", "used")):
        if amounts := document.get(part, {}).get(name):
            document[part][name] = rounded(amounts)


def _secret(document: Document) -> None:
    document.setdefault("type", "Opaque")


def _binding(document: Document) -> None:
    reference = document.setdefault("roleRef", {})
    reference["apiGroup"] = reference.get("apiGroup") or _RBAC
    for subject in document.get("subjects") or []:
        if subject.get("kind") in ("User", "Group"):
            subject.setdefault("apiGroup", _RBAC)


def _service(document: Document) -> None:
    spec = document.setdefault("spec", {})
    affinity = spec.setdefault("sessionAffinity", "None")
    if affinity == "None":
        spec.pop("sessionAffinityConfig", None)
    elif ((spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}).get("timeoutSeconds") is None:
        spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}
    kind = spec.setdefault("type", "ClusterIP")
    for port in spec.get("ports", []):
        port.setdefault("protocol", "TCP")
        if not port.get("targetPort"):
            port["targetPort"] = port.get("port", 0)
    if kind in ("NodePort", "LoadBalancer"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if kind in ("ClusterIP", "NodePort", "LoadBalancer"):
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def _daemon_set(document: Document) -> None:
    spec = document.setdefault("spec", {})
    default_pod_spec(spec.setdefault("template", {}).setdefault("spec", {}))
    strategy = spec.setdefault("updateStrategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    spec.setdefault("revisionHistoryLimit", 10)


def _endpoints(document: Document) -> None:
    for subset in document.get("subsets") or []:
        for port in subset.get("ports") or []:
            port.setdefault("protocol", "TCP")


def _priority_class(document: Document) -> None:
    document.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _match_resources(match: Document | None) -> None:
    if match is not None:
        match.setdefault("matchPolicy", "Equivalent")
        match.setdefault("namespaceSelector", {})
        match.setdefault("objectSelector", {})
        for rule in (*match.get("resourceRules", ()), *match.get("excludeResourceRules", ())):
            rule.setdefault("scope", "*")


def _admission_policy(document: Document) -> None:
    spec = document.setdefault("spec", {})
    spec.setdefault("failurePolicy", "Fail")
    _match_resources(spec.get("matchConstraints"))


def _admission_binding(document: Document) -> None:
    spec = document.setdefault("spec", {})
    _match_resources(spec.get("matchResources"))


def _webhooks(document: Document) -> None:
    for webhook in document.get("webhooks", []):
        webhook.setdefault("failurePolicy", "Fail")
        webhook.setdefault("matchPolicy", "Equivalent")
        webhook.setdefault("namespaceSelector", {})
        webhook.setdefault("objectSelector", {})
        webhook.setdefault("timeoutSeconds", 10)
        if document["kind"].startswith("Mutating"):
            webhook.setdefault("reinvocationPolicy", "Never")
        for rule in webhook.get("rules", []):
            rule.setdefault("scope", "*")
        if service := (webhook.get("clientConfig") or {}).get("service"):
            service.setdefault("port", 443)


def _ports(spec: Document) -> Iterator[Document]:
    for container in containers_of(spec, "initContainers", "containers"):
        yield from container.get("ports", [])


_RULES: Mapping[tuple[Any, Any], Callable[[Document], None]] = {
    **NEIGHBOUR_RULES,
    ("v1", "Pod"): _pod,
    ("v1", "Namespace"): _namespace,
    ("v1", "Node"): _node,
    ("v1", "ResourceQuota"): _quota,
    ("v1", "Secret"): _secret,
    ("v1", "Service"): _service,
    ("apps/v1", "ReplicaSet"): _replica_set,
    ("apps/v1", "Deployment"): _deployment,
    ("apps/v1", "DaemonSet"): _daemon_set,
    ("v1", "Endpoints"): _endpoints,
    (f"{_RBAC}/v1", "RoleBinding"): _binding,
    (f"{_RBAC}/v1", "ClusterRoleBinding"): _binding,
    ("scheduling.k8s.io/v1", "PriorityClass"): _priority_class,
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"): _admission_policy,
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding"): _admission_binding,
    ("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy"): _admission_policy,
    ("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicyBinding"): _admission_binding,
    ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"): _webhooks,
    ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"): _webhooks,
}
