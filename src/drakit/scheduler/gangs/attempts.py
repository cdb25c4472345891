"""Attempts at pods of groups: those of a gang together, others one by one.

In:  a pod from the queue that names a PodGroup.
Out: all members of its gang that wait are taken from the queue and placed one after the other, each in sight of those
     before. When the gang has its minimum, those that were placed go on to be bound, the others wait on. When it has
     not, and its pods differ, they are tried once more with those first that got no node. When that does not help
     either, every place is given back, and all wait. The group's condition says which.

Nothing is bound, and nothing is written for a place, before the whole gang is decided about; nobody else is placed
meanwhile. So no gang ever holds what another one needs, and a gang that cannot run holds nothing.

After that, members are bound each for itself. One whose binding fails is tried again; the others stay.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import msgspec

from drakit.api.objects.pods import Pod
from drakit.api.objects.workloads import PodGroup
from drakit.base.clock import Clock
from drakit.client import Key
from drakit.scheduler.cache import SchedulerCache
from drakit.scheduler.config.names import GANG_SCHEDULING
from drakit.scheduler.cycles.binding import BindingJob, Bindings
from drakit.scheduler.cycles.cycle import Placement, SchedulingCycle
from drakit.scheduler.cycles.diagnosis import SchedulingRefusal, failed
from drakit.scheduler.cycles.failures import Failures
from drakit.scheduler.framework import PluginStatus, Profile, Unfinished
from drakit.scheduler.gangs.conditions import SCHEDULED, SCHEDULER_ERROR, UNSCHEDULABLE, GroupConditions
from drakit.scheduler.gangs.rounds import Member, Round, in_order
from drakit.scheduler.metrics import AttemptResult
from drakit.scheduler.metrics.attempts import SchedulerMetrics
from drakit.scheduler.metrics.podgroups import PodGroupMetrics
from drakit.scheduler.podgroups.gangscheduling import without_group
from drakit.scheduler.podgroups.groups import Groups, least
from drakit.scheduler.queue import QueuedPod, SchedulingQueue

log = logging.getLogger("drakit.scheduler")


class GroupAttempts:
    """`is_done_with` tells of a pod that is not to be tried any more; without `gangs`, pods are tried one by one."""

    def __init__(
        self,
        groups: Groups,
        cache: SchedulerCache,
        queue: SchedulingQueue,
        cycle: SchedulingCycle,
        failures: Failures,
        bindings: Bindings,
        conditions: GroupConditions,
        *,
        is_done_with: Callable[[Pod], bool],
        clock: Clock,
        metrics: SchedulerMetrics,
        podgroup_metrics: PodGroupMetrics,
        gangs: bool,
    ) -> None:
        self._groups = groups
        self._cache = cache
        self._queue = queue
        self._cycle = cycle
        self._failures = failures
        self._bindings = bindings
        self._conditions = conditions
        self._is_done_with = is_done_with
        self._clock = clock
        self._metrics = metrics
        self._podgroup_metrics = podgroup_metrics
        self._gangs = gangs

    async def attempt(self, profile: Profile, queued: QueuedPod, key: Key) -> None:
        """Try a pod, and with it its gang. Whatever happens, no pod that was taken stays in flight untried."""
        group = self._groups.get(key)
        held = Round([Member(queued)])
        try:
            if self._has_gangs(profile):
                held = self._gather(held, key, group)
                self._refuse_untried(held, key, group)
            await self._try(profile, held, group)
        except Exception:
            log.exception("pod group %s: the attempt failed", key)
            await self._abandon(profile, held)

    def _has_gangs(self, profile: Profile) -> bool:
        return self._gangs and any(plugin.name == GANG_SCHEDULING for plugin in profile.pre_enqueue)

    # Who takes part

    def _gather(self, held: Round, key: Key, group: PodGroup | None) -> Round:
        """The members of a gang that can be tried now; of another group only the pod itself."""
        if group is None or group.spec.scheduling_policy.gang is None:
            return held
        [first] = held.members
        members = list(self._groups.members(key))
        taken = [first.queued]
        for each in self._queue.take(uid for uid in members if uid != first.queued.uid):
            if self._is_done_with(each.pod.view):
                self._queue.done(each.uid)
            else:
                taken.append(each)
        # Members that are bound or being bound count as well: the gang needs so many fewer now.
        before = sum(self._cache.pod(uid) is not None for uid in members)
        return Round(in_order(taken), least(group), before)

    def _refuse_untried(self, held: Round, key: Key, group: PodGroup | None) -> None:
        """Refuse all, where they cannot be tried as what they are."""
        refusal: SchedulingRefusal | None = None
        if group is None:
            status = without_group(key.name).by(GANG_SCHEDULING)
            refusal = SchedulingRefusal(status=status, message=status.message, plugins=frozenset({GANG_SCHEDULING}))
        names = {each.queued.profile: None for each in held.members}
        if len(names) > 1:
            one, other, *_ = names
            message = "all pods in a single pod group should have the same .spec.schedulerName set"
            refusal = failed(PluginStatus.failed(f'{message}, got: "{other}" and "{one}"'))
        for member in held.members if refusal is not None else ():
            member.outcome = refusal

    # What becomes of them

    async def _try(self, profile: Profile, held: Round, group: PodGroup | None) -> None:
        began = self._clock.monotonic()
        await self._place(profile, held, held.members)
        # Pods that differ may fit in another order: a large pod placed last may find only small gaps. Equal pods
        # cannot.
        if not held.is_enough and held.placed and held.refused and held.is_mixed:
            await self._give_back(profile, held)
            await self._place(profile, held, held.begin_again())
        self._podgroup_metrics.placed(self._clock.monotonic() - began)
        gives_way = held.give_way()
        if held.is_enough:
            self._bind(profile, held, began)
        else:
            await self._give_back(profile, held)
        self._tell(profile, held, group, began)
        for member in held.members:
            if member.is_settled:
                continue
            if isinstance(member.outcome, SchedulingRefusal):
                await self._failures.handle(profile, member.queued, member.state, member.outcome, began)
            else:
                self._metrics.attempted(AttemptResult.UNSCHEDULABLE, profile.name, self._clock.monotonic() - began)
                self._failures.put_back(member.queued, member.state.pod, gives_way)
            member.is_settled = True

    async def _place(self, profile: Profile, held: Round, turns: Sequence[Member]) -> None:
        """Try members one after the other, until too few are left to reach the minimum.

        This gives up control only where a plugin goes on beside the loop, or refuses the node that was chosen and finds
        something written by an earlier attempt to undo.
        """
        refusals, spare = 0, held.spare
        for member in turns:
            if refusals > spare:
                return
            outcome = member.outcome or await self._run(profile, member)
            if isinstance(outcome, SchedulingRefusal):
                refusals += 1
                if outcome.node:
                    await self._failures.give_back(profile, member.state, outcome.node)
                    outcome = msgspec.structs.replace(outcome, node="")
            member.outcome = outcome

    async def _run(self, profile: Profile, member: Member) -> Placement | SchedulingRefusal:
        outcome = self._cycle.run(profile, member.state)
        unfinished = outcome.status.error if isinstance(outcome, SchedulingRefusal) else None
        if isinstance(unfinished, Unfinished) and await unfinished.finished():
            member.begin_again()
            outcome = self._cycle.run(profile, member.state)
        return outcome

    def _bind(self, profile: Profile, held: Round, began: float) -> None:
        for member, placement in held.placed:
            member.is_settled = True
            self._bindings.start(BindingJob(profile, member.queued, member.state, placement.node, began))

    async def _give_back(self, profile: Profile, held: Round) -> None:
        for member, placement in reversed(held.placed):
            await self._failures.give_back(profile, member.state, placement.node)

    def _tell(self, profile: Profile, held: Round, group: PodGroup | None, began: float) -> None:
        error = next((refusal for _, refusal in held.refused if refusal.is_error), None)
        if held.is_enough:
            result, reason, message = (
                AttemptResult.SCHEDULED if held.placed else AttemptResult.UNSCHEDULABLE,
                SCHEDULED,
                "",
            )
        elif error is not None:
            message = f"failed to schedule other pod from a pod group: {error.message}"
            result, reason = AttemptResult.ERROR, SCHEDULER_ERROR
        else:
            result, reason, message = AttemptResult.UNSCHEDULABLE, UNSCHEDULABLE, held.message
        self._podgroup_metrics.attempted(result, profile.name, self._clock.monotonic() - began)
        if group is not None:
            self._conditions.tell(group, reason, message)

    async def _abandon(self, profile: Profile, held: Round) -> None:
        """Something failed that never should: give back every place, and try all again after their backoff."""
        for member in held.members:
            if member.is_settled:
                continue
            if isinstance(member.outcome, Placement):
                await self._failures.give_back(profile, member.state, member.outcome.node)
            self._queue.put_back(member.queued, error=True)
