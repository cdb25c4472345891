"""How pods are written: first status, quality of service, grace period."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from drakit.api.objects.plain import Plain
from drakit.apiserver.strategies.base import KindStrategy, dotted, restore
from drakit.base import names
from drakit.base.quantity import Quantity

_COMPUTE = ("cpu", "memory")
DEFAULT_GRACE = 30


class PodStrategy(KindStrategy):
    generation = True
    returns_deleted = True
    has_status = True
    status_metadata = True
    unselectable = "field label not supported: {name}"
    extra_fields = dotted(
        "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
        "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName",
    )  # fmt: skip

    def prepare_create(self, new: Plain) -> None:
        new["status"] = {"phase": "Pending", "qosClass": quality_of_service(new["spec"])}
        if new["spec"].get("schedulingGates"):
            new["status"]["conditions"] = [
                {
                    "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates",
                    "lastProbeTime": None, "lastTransitionTime": new["metadata"].get("creationTimestamp"),
                }
            ]  # fmt: skip

    def warnings(self, new: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[str]:
        problems = names.check_dns_label(new["metadata"].get("name", "")) if old is None else []
        if problems:
            yield (
                "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; "
                f"a DNS label is recommended: [{' '.join(problems)}]"
            )

    def prepare(self, subresource: str, new: Plain, old: Mapping[str, Any], now: str) -> None:
        if subresource == "resize":
            _only_resources(new, old)
        elif subresource == "ephemeralcontainers":
            wanted = new["spec"]
            _set_back(new, old)
            restore(new["spec"], wanted, "ephemeralContainers")
        else:
            super().prepare(subresource, new, old, now)

    def prepare_status(self, new: Plain, old: Mapping[str, Any]) -> None:
        super().prepare_status(new, old)
        restore(new["metadata"], old["metadata"], "ownerReferences", "generation", "deletionTimestamp")
        status, before = new.setdefault("status", {}), old.get("status", {})
        if not status.get("qosClass") and before.get("qosClass"):
            new["status"] = {**status, "qosClass": before["qosClass"]}

    def default_grace(self, document: Mapping[str, Any], asked: int | None) -> int | None:
        spec, status = document.get("spec", {}), document.get("status", {})
        period = asked if asked is not None else spec.get("terminationGracePeriodSeconds", DEFAULT_GRACE)
        ended = status.get("phase") in ("Succeeded", "Failed")
        # Nothing runs: there is no kubelet to wait for.
        if not spec.get("nodeName") or ended:
            return 0
        # Upstream reads a negative period as one second.
        return max(int(period), 1) if period < 0 else int(period)

    def fields(self, document: Mapping[str, Any]) -> dict[str, str]:
        found = super().fields(document)
        found["spec.hostNetwork"] = found["spec.hostNetwork"] or "false"
        addresses = document.get("status", {}).get("podIPs") or ()
        found["status.podIPs"] = ",".join(each.get("ip", "") for each in addresses)
        return found


def _set_back(new: Plain, old: Mapping[str, Any]) -> None:
    """Give all but managedFields and resourceVersion its old value. The spec is a copy that may be changed."""
    metadata = {**old["metadata"]}
    restore(metadata, new["metadata"], "managedFields", "resourceVersion")
    new.clear()
    new.update({**old, "metadata": metadata, "spec": dict(old["spec"])})


def _only_resources(new: Plain, old: Mapping[str, Any]) -> None:
    """Take resources and resizePolicy of containers from the client, and nothing else."""
    wanted = new.get("spec", {})
    _set_back(new, old)
    for part in ("containers", "initContainers"):
        asked = {each.get("name"): each for each in wanted.get(part) or ()}
        if part in old["spec"]:
            new["spec"][part] = [_resized(each, asked.get(each["name"])) for each in old["spec"][part]]
    if wanted.get("resources"):
        new["spec"]["resources"] = wanted["resources"]


def _resized(container: Mapping[str, Any], asked: Mapping[str, Any] | None) -> Plain:
    if asked is None:
        return dict(container)
    return {**container, **{name: asked[name] for name in ("resources", "resizePolicy") if name in asked}}


def quality_of_service(spec: Mapping[str, Any]) -> str:
    """Guaranteed, Burstable or BestEffort, by requests and limits of the pod or else of its containers."""
    of_pod = spec.get("resources") or {}
    if of_pod.get("requests") or of_pod.get("limits"):
        return _quality([of_pod])
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    return _quality([each.get("resources") or {} for each in containers])


def _quality(claims: list[Mapping[str, Any]]) -> str:
    requests = _sums(each.get("requests") or {} for each in claims)
    limits = _sums(each.get("limits") or {} for each in claims)
    if not requests and not limits:
        return "BestEffort"
    # Guaranteed: every container has limits for cpu and memory, and the sums of requests and limits agree.
    held = all(all(_positive(each.get("limits") or {}, name) for name in _COMPUTE) for each in claims)
    if held and requests.keys() == limits.keys() and all(requests[name] == limits[name] for name in requests):
        return "Guaranteed"
    return "Burstable"


def _sums(lists: Iterable[Mapping[str, str]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for quantities in lists:
        for name in _COMPUTE:
            if _positive(quantities, name):
                total[name] = total.get(name, 0) + Quantity.parse(quantities[name]).nanos
    return total


def _positive(quantities: Mapping[str, str], name: str) -> bool:
    return name in quantities and Quantity.parse(quantities[name]).nanos > 0
