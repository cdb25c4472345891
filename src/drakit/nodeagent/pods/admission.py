"""Does the pod fit on the node?

In:  the node's allocatable amounts and labels; the pods that are there; the pod.
Out: nothing, or the kubelet's reason and words for turning it away.

The whole footprint counts (KEP-5517): containers, the largest moment of init containers, claims once, the pod's own
budget first, overhead. Extended resources that a claim provides are the claim's business, not the node's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from drakit.api import Container, Pod, pod_requests
from drakit.base.gates import FeatureGates
from drakit.base.quantity import Quantity
from drakit.nodeagent.devices.allocation import covered_pairs
from drakit.nodeagent.pods.services import Rejection

_CRITICAL_PRIORITY = 2_000_000_000
_NOTHING = Quantity.of(0)


@dataclass(frozen=True, slots=True)
class Shortage:
    resource: str
    requested: Quantity
    used: Quantity
    capacity: Quantity

    def rejection(self) -> Rejection:
        requested, used, capacity = (
            _number(self.resource, each) for each in (self.requested, self.used, self.capacity)
        )
        return Rejection(
            f"OutOf{self.resource}",
            f"Node didn't have enough resource: {self.resource}, requested: {requested}, used: {used}, "
            f"capacity: {capacity}",
        )


def _number(resource: str, amount: Quantity) -> int:
    """cpu in thousandths, all else in units, both rounded up."""
    return -(-amount.nanos // 1_000_000) if resource == "cpu" else amount.value


class NodeFit:
    """What fits beside what is there."""

    def __init__(self, allocatable: Callable[[], Mapping[str, Quantity]], gates: FeatureGates) -> None:
        self._allocatable = allocatable
        self._claims = "DRANodeAllocatableResources" in gates.on
        self._extended = "DRAExtendedResource" in gates.on

    def shortages(self, pod: Pod, others: Iterable[Pod]) -> list[Shortage]:
        """In a fixed order: pods, cpu, memory, ephemeral storage, then all others by name."""
        others = list(others)
        allocatable = self._allocatable()
        asked = self._footprint(pod)
        used: dict[str, Quantity] = {}
        for other in others:
            for name, amount in self._footprint(other).items():
                used[name] = used.get(name, _NOTHING) + amount
        asked["pods"] = Quantity.of(1)
        used["pods"] = Quantity.of(len(others))
        found = []
        for name in sorted(asked, key=_rank):
            taken, capacity = used.get(name, _NOTHING), allocatable.get(name, _NOTHING)
            if asked[name] and taken + asked[name] > capacity:
                found.append(Shortage(name, asked[name], taken, capacity))
        return found

    def _footprint(self, pod: Pod) -> dict[str, Quantity]:
        return pod_requests(self._without_covered(pod), claims=self._claims)

    def _without_covered(self, pod: Pod) -> Pod:
        """Without the extended resources that a claim gives to a container."""
        covered = covered_pairs(pod) if self._extended else set()
        if not covered:
            return pod
        spec = replace(
            pod.spec,
            containers=tuple(_without(each, covered) for each in pod.spec.containers),
            init_containers=tuple(_without(each, covered) for each in pod.spec.init_containers),
        )
        return replace(pod, spec=spec)


def _without(container: Container, covered: set[tuple[str, str]]) -> Container:
    kept = {name: each for name, each in container.resources.requests.items() if (container.name, name) not in covered}
    return replace(container, resources=replace(container.resources, requests=kept))


def _rank(name: str) -> tuple[int, str]:
    order = ("pods", "cpu", "memory", "ephemeral-storage")
    return (order.index(name) if name in order else len(order), name)


def is_critical(pod: Pod) -> bool:
    return (pod.spec.priority or 0) >= _CRITICAL_PRIORITY


def victims(fit: NodeFit, pod: Pod, others: Sequence[Pod], *, with_claims: bool = False) -> list[Pod] | None:
    """Whom a critical pod may drive out so that it fits: the least important first, as few as possible; none if
    even all of them are not enough.

    Of equally important ones those that ask for most go first, by their spec, and `with_claims` by their claims too.
    """
    candidates = sorted(
        (each for each in others if not is_critical(each)),
        key=lambda each: (each.spec.priority or 0, -_weight(each, with_claims=with_claims)),
    )
    chosen: list[Pod] = []
    remaining = list(others)
    for candidate in candidates:
        if not fit.shortages(pod, remaining):
            break
        chosen.append(candidate)
        remaining.remove(candidate)
    if fit.shortages(pod, remaining):
        return None
    for candidate in list(chosen):  # one that is not needed after all stays
        if not fit.shortages(pod, [*remaining, candidate]):
            chosen.remove(candidate)
            remaining.append(candidate)
    return chosen


def _weight(pod: Pod, *, with_claims: bool) -> int:
    return sum(amount.nanos for amount in pod_requests(pod, claims=with_claims).values())
