"""One round of placing members of a group: who takes part, who got a node, and whether that is enough. Pure.

In:  members, and what the scheduling cycle said about each.
Out: whether the group has enough pods, and the refusal of each member that gives its node back.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from drakit.scheduler.config.names import GANG_SCHEDULING
from drakit.scheduler.cycles.cycle import Placement
from drakit.scheduler.cycles.diagnosis import SchedulingRefusal
from drakit.scheduler.framework import CycleState, PluginStatus
from drakit.scheduler.queue import QueuedPod

UNSCHEDULABLE = "pod group is unschedulable"
WAITING = "waiting for minCount pods from a gang to be scheduled"


class Member:
    """`outcome` of None: it has not been tried. `is_settled`: it is being bound, or back in the queue."""

    __slots__ = ("is_settled", "outcome", "queued", "state")

    def __init__(self, queued: QueuedPod) -> None:
        self.queued = queued
        self.state = CycleState(queued.pod.view, queued.pod.document)
        self.outcome: Placement | SchedulingRefusal | None = None
        self.is_settled = False

    def begin_again(self) -> None:
        """Forget what an attempt that took nothing has found."""
        self.state = CycleState(self.queued.pod.view, self.queued.pod.document)

    @property
    def name(self) -> str:
        metadata = self.state.pod.metadata
        return f"{metadata.namespace}/{metadata.name}"


class Round(msgspec.Struct):
    """`least` pods of the group run, or none; `before` of them had a node when the round began.

    Members stand in the order of the queue, whoever is tried first: so the same attempt is told in the same words.
    """

    members: list[Member]
    least: int = 1
    before: int = 0

    @property
    def placed(self) -> list[tuple[Member, Placement]]:
        return [(each, each.outcome) for each in self.members if isinstance(each.outcome, Placement)]

    @property
    def refused(self) -> list[tuple[Member, SchedulingRefusal]]:
        return [(each, each.outcome) for each in self.members if isinstance(each.outcome, SchedulingRefusal)]

    @property
    def count(self) -> int:
        """How many pods of the group have a node."""
        return self.before + len(self.placed)

    @property
    def is_enough(self) -> bool:
        return self.count >= self.least

    @property
    def spare(self) -> int:
        """How many members may be refused before it is not enough whatever becomes of the others."""
        return self.before + len(self.members) - self.least

    @property
    def is_mixed(self) -> bool:
        """Whether members ask for different things, so that their order may matter."""
        specs = (each.state.pod.spec for each in self.members)
        first = next(specs, None)
        return any(each != first for each in specs)

    def begin_again(self) -> list[Member]:
        """Forget what was found; the members in their new turn: those first that got no node.

        Places that were had must have been given back.
        """
        refused = {each.queued.uid for each, _ in self.refused}
        self.members = [Member(each.queued) for each in self.members]
        return sorted(self.members, key=lambda each: each.queued.uid not in refused)

    @property
    def message(self) -> str:
        """Why the group does not run, in one sentence."""
        if self.least <= 1:
            return UNSCHEDULABLE
        head = f"{UNSCHEDULABLE}, {WAITING}:"
        for member, refusal in self.refused:
            return f"{head} {self.count} of {self.least} can be placed, pod {member.name} cannot: {refusal.message}"
        return f"{head} {self.before + len(self.members)} of {self.least} can be tried"

    def give_way(self) -> SchedulingRefusal:
        """The refusal of a member that had a node, when its group does not reach the minimum.

        It waits for the same plugins as the members that were refused: if it gets another node, its own may suit them.
        """
        plugins = frozenset[str]().union(*(refusal.plugins for _, refusal in self.refused))
        status = PluginStatus.unschedulable(self.message).by(GANG_SCHEDULING)
        return SchedulingRefusal(status=status, message=self.message, plugins=plugins | {GANG_SCHEDULING})


def in_order(taken: Iterable[QueuedPod]) -> list[Member]:
    """Members in the order in which they are tried: the queue's."""
    return [Member(each) for each in sorted(taken, key=lambda each: each.order)]
