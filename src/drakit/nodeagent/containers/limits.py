"""What a cgroup and the out-of-memory killer should know of a container.

In:  requests and limits of a Pod document; behind a switch, what its claims take too (KEP-5517, next stage).
Out: cpu weight and quota, memory limit, OOM score.

The QoS class comes from the spec alone, whatever the switch says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from drakit.base.quantity import Quantity
from drakit.nodeagent.containers.documents import NOTHING, Document, all_containers, resources_of, spec_of
from drakit.nodeagent.runtimes.contract import NO_LIMITS, ContainerLimits, ContainerRole

GUARANTEED, BURSTABLE, BEST_EFFORT = "Guaranteed", "Burstable", "BestEffort"
_CRITICAL_PRIORITY = 2_000_000_000
_PERIOD = 100_000
_LEAST_SHARES, _LEAST_QUOTA = 2, 1000
_PROTECTED_SCORE = -997
_COMPUTE = ("cpu", "memory")

Amounts = dict[str, Quantity]


def qos_class(pod: Document) -> str:
    """Guaranteed when each container limits cpu and memory to what it asks for; BestEffort when none names either."""
    own = spec_of(pod).get("resources")
    parts = [own] if own and _names_any([own]) else [c.get("resources") or NOTHING for c, _ in all_containers(pod)]
    if not _names_any(parts):
        return BEST_EFFORT
    return GUARANTEED if all(_is_guaranteed(part) for part in parts) else BURSTABLE


def container_limits(
    pod: Document, container: Document, *, node_memory: int = 0, with_claims: bool = False
) -> ContainerLimits:
    """`node_memory`: the node's capacity in bytes. `with_claims`: what claims take of the node is added."""
    requests, limits = _amounts(container, "requests"), _amounts(container, "limits")
    if with_claims:
        for name, amount in claim_amounts(pod, container["name"]).items():
            requests[name] = requests.get(name, Quantity.of(0)) + amount
            if name in limits:
                limits[name] = limits[name] + amount
    return ContainerLimits(
        cpu_shares=_shares(requests.get("cpu")),
        cpu_quota=_quota(limits.get("cpu")),
        cpu_period=_PERIOD,
        memory_bytes=limits["memory"].value if "memory" in limits else 0,
        oom_score_adj=oom_score(pod, container, requests.get("memory"), node_memory=node_memory),
    )


def pod_cgroup_limits(pod: Document) -> ContainerLimits:
    """What the pod itself names, for all its containers together; nothing when it names nothing."""
    own = spec_of(pod).get("resources") or NOTHING
    if not _names_any([own]):
        return NO_LIMITS
    requests, limits = _amounts({"resources": own}, "requests"), _amounts({"resources": own}, "limits")
    return ContainerLimits(
        cpu_shares=_shares(requests.get("cpu")),
        cpu_quota=_quota(limits.get("cpu")),
        cpu_period=_PERIOD,
        memory_bytes=limits["memory"].value if "memory" in limits else 0,
    )


def oom_score(pod: Document, container: Document, memory: Quantity | None, *, node_memory: int) -> int:
    """The more of its node's memory a container asked for, the later it is killed; -997 comes last, 1000 first."""
    if (spec_of(pod).get("priority") or 0) >= _CRITICAL_PRIORITY:
        return _PROTECTED_SCORE
    quality = qos_class(pod)
    if quality == GUARANTEED:
        return _PROTECTED_SCORE
    if quality == BEST_EFFORT:
        return 1000
    score = _burstable_score(0 if memory is None else memory.value, node_memory)
    if _is_sidecar(pod, container):
        # A sidecar must not be killed before the containers that it serves.
        score = min([score, *_main_scores(pod, node_memory)])
    return score


def claim_amounts(pod: Document, container: str) -> Amounts:
    """What the claims that this container uses take of the node's own resources."""
    total: Amounts = {}
    for entry in (pod.get("status") or NOTHING).get("nodeAllocatableResourceClaimStatuses") or ():
        if container in (entry.get("containers") or ()):
            for name, amount in (entry.get("resources") or {}).items():
                total[name] = total.get(name, Quantity.of(0)) + Quantity.parse(str(amount))
    return total


def _burstable_score(memory: int, node_memory: int) -> int:
    score = 1000 - 1000 * memory // node_memory if node_memory else 999
    # 1000 is for BestEffort alone, and nobody gets close to what is protected.
    return min(max(score, 1000 + _PROTECTED_SCORE), 999)


def _main_scores(pod: Document, node_memory: int) -> list[int]:
    mains = [container for container, role in all_containers(pod) if role is ContainerRole.MAIN]
    amounts = [_amounts(container, "requests").get("memory") for container in mains]
    return [_burstable_score(0 if amount is None else amount.value, node_memory) for amount in amounts]


def _is_sidecar(pod: Document, container: Document) -> bool:
    return any(c["name"] == container["name"] and role is ContainerRole.SIDECAR for c, role in all_containers(pod))


def _amounts(container: Document, which: str) -> Amounts:
    return {name: Quantity.parse(str(amount)) for name, amount in resources_of(container, which).items()}


def _shares(cpu: Quantity | None) -> int:
    return max(cpu.milli_value * 1024 // 1000, _LEAST_SHARES) if cpu is not None else _LEAST_SHARES


def _quota(cpu: Quantity | None) -> int:
    if cpu is None or not cpu:
        return 0
    return max(cpu.milli_value * _PERIOD // 1000, _LEAST_QUOTA)


def _names_any(parts: Iterable[Mapping[str, Any]]) -> bool:
    return any(
        Quantity.parse(str((part.get(which) or {}).get(name, "0")))
        for part in parts
        for which in ("limits", "requests")
        for name in _COMPUTE
    )


def _is_guaranteed(part: Mapping[str, Any]) -> bool:
    limits, requests = part.get("limits") or {}, part.get("requests") or {}
    return all(
        name in limits and Quantity.parse(str(limits[name])) == Quantity.parse(str(requests.get(name, limits[name])))
        for name in _COMPUTE
    )
