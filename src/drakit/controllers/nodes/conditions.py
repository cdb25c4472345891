"""Conditions of a node, and the taints that follow from them. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from drakit.api import Node
from drakit.base.taints import NO_EXECUTE, NO_SCHEDULE, Taint
from drakit.base.wellknown import NOT_READY_TAINT, OUT_OF_SERVICE_TAINT, UNREACHABLE_TAINT, UNSCHEDULABLE_TAINT

READY = "Ready"
_PRESSURES = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}
_OURS = frozenset({NOT_READY_TAINT, UNREACHABLE_TAINT, UNSCHEDULABLE_TAINT, *_PRESSURES.values()})
TOLD_BY_AGENT = (READY, "MemoryPressure", "DiskPressure", "PIDPressure")


def ready(node: Node) -> str | None:
    """`True`, `False` or `Unknown`; none for a node of which nobody has ever said."""
    return next((each.status for each in node.status.conditions if each.type == READY), None)


def taints_for(node: Node, now: str) -> tuple[Taint, ...]:
    """The taints that a node should have: those of others as they are, ours as its conditions say."""
    wanted = list(_wanted(node))
    kept = [each for each in node.spec.taints if each.key not in _OURS or (each.key, each.effect) in wanted]
    there = {(each.key, each.effect) for each in kept}
    # Only taints that evict need to know when they came.
    added = [
        Taint(key=key, effect=effect, time_added=now if effect == NO_EXECUTE else None)
        for key, effect in wanted
        if (key, effect) not in there
    ]
    return (*kept, *added)


def _wanted(node: Node) -> Iterable[tuple[str, str]]:
    state = ready(node)
    key = {"False": NOT_READY_TAINT, "Unknown": UNREACHABLE_TAINT}.get(state or "")
    if key is not None:
        yield key, NO_SCHEDULE
        yield key, NO_EXECUTE
    if node.spec.unschedulable:
        yield UNSCHEDULABLE_TAINT, NO_SCHEDULE
    for condition in node.status.conditions:
        if condition.type in _PRESSURES and condition.status == "True":
            yield _PRESSURES[condition.type], NO_SCHEDULE


def is_out_of_service(node: Node) -> bool:
    """Whether an operator says that a node, which is not ready, will not come back with its pods."""
    return ready(node) != "True" and any(each.key == OUT_OF_SERVICE_TAINT for each in node.spec.taints)
