"""Gangs in a rehearsal: members are placed as the scheduler places them, enough of them or none. Pure.

In:  a rehearsal, the waiting members of a gang, how many of them have to be placed.
Out: what the scheduler says of each. Where too few fit, the rehearsal is as it was before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from drakit.api import Pod, PodGroup, ResourceClaim
from drakit.api.podclaims import pod_group_name
from drakit.scheduler.cycles.cycle import Placement
from drakit.scheduler.cycles.diagnosis import SchedulingRefusal
from drakit.scheduler.rehearsal import Rehearsal

Outcome = Placement | SchedulingRefusal
FindGroup = Callable[[type[PodGroup], str, str], PodGroup | None]
Claims = Mapping[tuple[str, str], ResourceClaim]


class GangTrial(msgspec.Struct, frozen=True):
    """`outcomes` stand in the order of the members that were given.

    `turns` has the members in the order in which enough of them fit; where too few do, in the order of the queue.
    """

    outcomes: tuple[Outcome, ...]
    turns: tuple[Pod, ...]
    is_enough: bool

    @property
    def placed(self) -> int:
        return sum(isinstance(each, Placement) for each in self.outcomes)


def gang_of(find: FindGroup, pod: Pod) -> PodGroup | None:
    """The group of the pod, if its members run together or not at all."""
    name = pod_group_name(pod)
    group = find(PodGroup, name, pod.metadata.namespace) if name is not None else None
    return group if group is not None and group.spec.scheduling_policy.gang is not None else None


def members_of(pods: Iterable[Pod], group: PodGroup) -> list[Pod]:
    """The pods of a group that have not ended, in the order of the scheduler's queue."""
    namespace, name = group.metadata.namespace, group.metadata.name
    mine = (pod for pod in pods if pod.metadata.namespace == namespace and pod_group_name(pod) == name)
    return in_queue_order(pod for pod in mine if not pod.is_terminal)


def in_queue_order(pods: Iterable[Pod]) -> list[Pod]:
    """The order of PrioritySort, and then by name, so that the answer is always the same."""
    return sorted(pods, key=lambda pod: (-(pod.spec.priority or 0), pod.metadata.creation_timestamp or "", key_of(pod)))


def key_of(obj: Pod | ResourceClaim | PodGroup) -> tuple[str, str]:
    return obj.metadata.namespace, obj.metadata.name


def place_gang(rehearsal: Rehearsal, members: Sequence[Pod], needed: int, *, undo: bool = False) -> GangTrial:
    """Place members one after the other; where too few fit and members differ, again with the refused ones first.

    With `undo` the rehearsal is as it was before in any case.
    """
    # The claims before the attempt: if the gang does not fit, they are restored. A pod without a gang never is too few.
    claims = {key_of(each): each for each in rehearsal.all(ResourceClaim)} if needed > 0 or undo else {}
    found = _round(rehearsal, members, members, needed)
    if not found.is_enough and 0 < found.placed < len(members) and any(p.spec != members[0].spec for p in members):
        _take_back(rehearsal, members, claims)
        refused = {key_of(pod) for pod, each in zip(members, found.outcomes, strict=True) if not _is_placed(each)}
        turns = sorted(members, key=lambda pod: key_of(pod) not in refused)
        found = _round(rehearsal, members, turns, needed)
    if undo or not found.is_enough:
        _take_back(rehearsal, members, claims)
    return found


def _round(rehearsal: Rehearsal, members: Sequence[Pod], turns: Sequence[Pod], needed: int) -> GangTrial:
    outcomes = {key_of(pod): rehearsal.place(pod) for pod in turns}
    placed = sum(map(_is_placed, outcomes.values()))
    is_enough = placed >= needed
    return GangTrial(tuple(outcomes[key_of(pod)] for pod in members), tuple(turns if is_enough else members), is_enough)


def _is_placed(outcome: Outcome) -> bool:
    return isinstance(outcome, Placement)


def _take_back(rehearsal: Rehearsal, members: Sequence[Pod], claims: Claims) -> None:
    after = rehearsal.all(ResourceClaim)
    rehearsal.remove(each for each in after if key_of(each) not in claims)
    changed = (each for each in after if claims.get(key_of(each), each) is not each)
    rehearsal.put([claims[key_of(each)] for each in changed])
    rehearsal.put(members)
