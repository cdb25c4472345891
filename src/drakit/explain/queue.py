"""Pods that wait, placed in the order of the scheduler's queue. Pure.

In:  a rehearsal.
Out: per pod its node and devices, or why it stays pending. A gang is placed whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from drakit.api import Pod, PodGroup, ResourceClaim
from drakit.api.podclaims import claim_names, pod_group_name
from drakit.explain.given import given_devices
from drakit.explain.questions import PodPlacement
from drakit.scheduler.cycles.cycle import Placement
from drakit.scheduler.podgroups.groups import least
from drakit.scheduler.rehearsal import Rehearsal

Progress = Callable[[Sequence[Pod], str], Iterator[Pod]]
_GANG = "its gang needs more pods than fit"


class PendingPods:
    """`moved` has the previous node of each pod that had one, by namespace and name."""

    def __init__(self, rehearsal: Rehearsal, moved: Mapping[tuple[str, str], str] | None = None) -> None:
        self._rehearsal = rehearsal
        self._moved = moved or {}

    def place_all(self, progress: Progress | None = None) -> list[PodPlacement]:
        """Try each once, as one round of the scheduler would."""
        waiting = self._in_order()
        found: dict[tuple[str, str], PodPlacement] = {}
        for pod in progress(waiting, "placing pods") if progress else waiting:
            # Placed already, together with another pod of its gang.
            if _key(pod) in found:
                continue
            gang = self._gang(pod, waiting)
            for each, placement in zip(gang, self._place(gang, pod), strict=True):
                found[_key(each)] = replace(placement, order=len(found) + 1)
        return list(found.values())

    def _in_order(self) -> list[Pod]:
        waiting = [pod for pod in self._rehearsal.all(Pod) if not pod.spec.node_name and not pod.is_terminal]
        return sorted(
            (pod for pod in waiting if not pod.metadata.deletion_timestamp),
            # The order of PrioritySort, and then by name, so that the answer is always the same.
            key=lambda pod: (-(pod.spec.priority or 0), pod.metadata.creation_timestamp or "", _key(pod)),
        )

    def _gang(self, pod: Pod, waiting: Sequence[Pod]) -> list[Pod]:
        """The pod, with the waiting pods of its gang: they are placed together or not at all."""
        name = pod_group_name(pod)
        if name is None or self._group(pod, name) is None:
            return [pod]
        return [each for each in waiting if _group_key(each) == _group_key(pod)]

    def _group(self, pod: Pod, name: str) -> PodGroup | None:
        groups = self._rehearsal.all(PodGroup)
        there = (each for each in groups if each.metadata.namespace == pod.metadata.namespace)
        found = next((each for each in there if each.metadata.name == name), None)
        return found if found is not None and found.spec.scheduling_policy.gang is not None else None

    def _place(self, gang: Sequence[Pod], first: Pod) -> list[PodPlacement]:
        # The claims before the attempt: if the gang does not fit, they are restored.
        claims = {_claim_key(each): each for each in self._rehearsal.all(ResourceClaim)} if len(gang) > 1 else {}
        found = [self._place_one(pod) for pod in gang]
        group = self._group(first, pod_group_name(first) or "") if pod_group_name(first) else None
        mine = [each for each in self._rehearsal.all(Pod) if _group_key(each) == _group_key(first)]
        running = sum(bool(each.spec.node_name) for each in mine)
        if group is None or running >= least(group):
            return found
        self._take_back(gang, claims)
        return [each if each.reason else replace(each, node="", devices=(), reason=_GANG) for each in found]

    def _take_back(self, gang: Sequence[Pod], claims: Mapping[tuple[str, str], ResourceClaim]) -> None:
        made = [each for each in self._rehearsal.all(ResourceClaim) if _claim_key(each) not in claims]
        self._rehearsal.remove(made)
        self._rehearsal.put(claims.values())
        self._rehearsal.put(gang)

    def _place_one(self, pod: Pod) -> PodPlacement:
        outcome = self._rehearsal.place(pod)
        about = PodPlacement(0, pod.metadata.namespace, pod.metadata.name, moved=self._moved.get(_key(pod), ""))
        if not isinstance(outcome, Placement):
            return replace(about, reason=outcome.message)
        bound = self._rehearsal.pod(*_key(pod)) or pod
        names = dict.fromkeys(claim_names(bound).values())
        claims = (self._rehearsal.claim(pod.metadata.namespace, name) for name in names)
        devices = [given.device for claim in claims if claim is not None for given in given_devices(claim)]
        return replace(about, node=outcome.node, devices=tuple(devices))


def _key(pod: Pod) -> tuple[str, str]:
    return pod.metadata.namespace, pod.metadata.name


def _group_key(pod: Pod) -> tuple[str, str] | None:
    name = pod_group_name(pod)
    return (pod.metadata.namespace, name) if name is not None else None


def _claim_key(claim: ResourceClaim) -> tuple[str, str]:
    return claim.metadata.namespace, claim.metadata.name
