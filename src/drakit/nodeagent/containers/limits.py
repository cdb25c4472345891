"""What a cgroup and the out-of-memory killer should know of a container.

In:  requests and limits of a Pod document; behind a switch, what its claims take too (KEP-5517, next stage).
Out: cpu weight and quota, memory limit, OOM score.

The QoS class comes from the spec alone, whatever the switch says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
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

_NOTHING = Quantity.of(0)

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
    added = claim_amounts(pod, container["name"]) if with_claims else {}
    return replace(
        _cgroup_limits(container, added),
        oom_score_adj=oom_score(pod, container, node_memory=node_memory, with_claims=with_claims),
    )


def pod_cgroup_limits(pod: Document, *, with_claims: bool = False) -> ContainerLimits:
    """What the pod itself names, for all its containers together; nothing when it names nothing."""
    own = spec_of(pod).get("resources") or NOTHING
    if not _names_any([own]):
        return NO_LIMITS
    return _cgroup_limits({"resources": own}, claim_amounts(pod) if with_claims else {})


def _cgroup_limits(part: Document, added: Amounts) -> ContainerLimits:
    """What a container or a pod names, with what claims add: they raise a limit, and make none."""
    requests = _sum(_amounts(part, "requests"), added)
    limits = _amounts(part, "limits")
    limits |= {name: limits[name] + amount for name, amount in added.items() if name in limits}
    return ContainerLimits(
        cpu_shares=_shares(requests.get("cpu")),
        cpu_quota=_quota(limits.get("cpu")),
        cpu_period=_PERIOD,
        memory_bytes=limits["memory"].value if "memory" in limits else 0,
    )


def oom_score(pod: Document, container: Document, *, node_memory: int, with_claims: bool = False) -> int:
    """The more of its node's memory a container asked for, the later it is killed; -997 comes last, 1000 first."""
    if (spec_of(pod).get("priority") or 0) >= _CRITICAL_PRIORITY:
        return _PROTECTED_SCORE
    quality = qos_class(pod)
    if quality == GUARANTEED:
        return _PROTECTED_SCORE
    if quality == BEST_EFFORT:
        return 1000
    counted = [container]
    if _is_sidecar(pod, container):
        # A sidecar must not be killed before the containers that it serves.
        counted += [each for each, role in all_containers(pod) if role is ContainerRole.MAIN]
    memory = max(_memory(pod, each, with_claims=with_claims) for each in counted)
    return _burstable_score(memory, node_memory)


def _memory(pod: Document, container: Document, *, with_claims: bool) -> int:
    """The bytes that a container asks for."""
    added = claim_amounts(pod, container["name"]) if with_claims else {}
    asked = _sum(_amounts(container, "requests"), added).get("memory")
    return 0 if asked is None else asked.value


def claim_amounts(pod: Document, container: str | None = None) -> Amounts:
    """What claims take of the node's own resources: those that this container uses, or all of the pod, each once."""
    total: Amounts = {}
    for entry in (pod.get("status") or NOTHING).get("nodeAllocatableResourceClaimStatuses") or ():
        if container is None or container in (entry.get("containers") or ()):
            amounts = {name: Quantity.parse(str(amount)) for name, amount in (entry.get("resources") or {}).items()}
            total = _sum(total, amounts)
    return total


def _sum(first: Amounts, second: Amounts) -> Amounts:
    return {name: first.get(name, _NOTHING) + second.get(name, _NOTHING) for name in first | second}


def _burstable_score(memory: int, node_memory: int) -> int:
    score = 1000 - 1000 * memory // node_memory if node_memory else 999
    # 1000 is for BestEffort alone, and nobody gets close to what is protected.
    return min(max(score, 1000 + _PROTECTED_SCORE), 999)


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
