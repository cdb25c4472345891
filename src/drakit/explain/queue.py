"""Pods that wait, placed in the order of the scheduler's queue. Pure.

In:  a rehearsal.
Out: per pod its node and devices, or why it stays pending. A gang is placed whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from drakit.api import Pod, PodGroup
from drakit.api.podclaims import claim_names
from drakit.explain.gangs import gang_of, in_queue_order, key_of, members_of, place_gang
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
            if key_of(pod) in found:
                continue
            gang, needed = self._gang(pod, waiting)
            for each, placement in zip(gang, self._place(gang, needed), strict=True):
                found[key_of(each)] = replace(placement, order=len(found) + 1)
        return list(found.values())

    def _in_order(self) -> list[Pod]:
        waiting = [pod for pod in self._rehearsal.all(Pod) if not pod.spec.node_name and not pod.is_terminal]
        return in_queue_order(pod for pod in waiting if not pod.metadata.deletion_timestamp)

    def _gang(self, pod: Pod, waiting: Sequence[Pod]) -> tuple[list[Pod], int]:
        """The pod, with the waiting pods of its gang, and how many of them have to be placed together."""
        group = gang_of(self._group, pod)
        if group is None:
            return [pod], 0
        running = sum(bool(each.spec.node_name) for each in members_of(self._rehearsal.all(Pod), group))
        return members_of(waiting, group), least(group) - running

    def _group(self, kind: type[PodGroup], name: str, namespace: str) -> PodGroup | None:
        return next((each for each in self._rehearsal.all(kind) if key_of(each) == (namespace, name)), None)

    def _place(self, gang: Sequence[Pod], needed: int) -> Iterator[PodPlacement]:
        found = place_gang(self._rehearsal, gang, needed)
        for pod, outcome in zip(gang, found.outcomes, strict=True):
            about = PodPlacement(0, *key_of(pod), moved=self._moved.get(key_of(pod), ""))
            if not isinstance(outcome, Placement):
                yield replace(about, reason=outcome.message)
            elif not found.is_enough:
                yield replace(about, reason=_GANG)
            else:
                yield replace(about, node=outcome.node, devices=tuple(self._devices(pod)))

    def _devices(self, pod: Pod) -> Iterator[str]:
        names = dict.fromkeys(claim_names(self._rehearsal.pod(*key_of(pod)) or pod).values())
        claims = (self._rehearsal.claim(pod.metadata.namespace, name) for name in names)
        yield from (given.device for claim in claims if claim is not None for given in given_devices(claim))
