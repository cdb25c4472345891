"""The last plugin that is asked when a pod fits nowhere: can pods of lower priority make room?

In:  a pod and why each node refused it.
Out: victims on their way out, and a node that the pod is nominated for, where what they leave is kept for it; or why
     that would not help, in the words of kube-scheduler.

The decision is made at once, on one state of the cluster; only the evictions are waited for.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from drakit.api.objects.pods import Pod
from drakit.api.text.times import format_time
from drakit.base.errors import DrakitError
from drakit.client import BUDGETS, PODS, Key, V
from drakit.scheduler.cache import SchedulerCache
from drakit.scheduler.cache.nominations import Nominations, priority_of
from drakit.scheduler.config import Args, DynamicResourcesArgs, SchedulerConfiguration
from drakit.scheduler.config.names import DYNAMIC_RESOURCES
from drakit.scheduler.cycles.conditions import not_nominated
from drakit.scheduler.cycles.diagnosis import of_each
from drakit.scheduler.cycles.failures import patch_status
from drakit.scheduler.framework import (
    SUCCESS,
    Code,
    CycleState,
    Handle,
    NodeInfo,
    PluginStatus,
    PreemptionExtensions,
    Profile,
    Rejections,
    on_node,
)
from drakit.scheduler.metrics.attempts import SchedulerMetrics
from drakit.scheduler.podgroups.groups import Groups, group_key
from drakit.scheduler.preemption.candidates import enough_candidates, pick
from drakit.scheduler.preemption.eviction import evict_all, is_preempted
from drakit.scheduler.preemption.trials import Trial
from drakit.scheduler.preemption.victims import Candidate, select_victims

log = logging.getLogger("drakit.scheduler")

NAME = "DefaultPreemption"
NOT_HELPFUL = PluginStatus.unresolvable("Preemption is not helpful for scheduling")
NEVER = "not eligible due to preemptionPolicy=Never."
TERMINATING = "not eligible due to a terminating pod on the nominated node."
GANG = "not eligible: for one pod of a gang alone nobody is evicted."


class Preemption:
    """The last plugin of a profile in PostFilter. `keeps` are those of its plugins that account for more than nodes."""

    name = NAME

    def __init__(
        self,
        profile: Profile,
        keeps: Sequence[PreemptionExtensions],
        handle: Handle,
        cache: SchedulerCache,
        nominations: Nominations,
        metrics: SchedulerMetrics,
    ) -> None:
        self._profile = profile
        self._keeps = keeps
        self._handle = handle
        self._cache = cache
        self._nominations = nominations
        self._metrics = metrics
        self._groups = Groups.shared(handle) if handle.gates.enabled("GangScheduling") else None

    async def post_filter(self, state: CycleState, pod: Pod, rejections: Rejections) -> PluginStatus:
        self._metrics.preemption_attempts.inc()
        why = self._is_ineligible(pod)
        if why:
            return _told(why)
        trial = Trial(
            self._profile, self._keeps, self._nominations.seen_by(pod, self._cache.all()), pod, state.document
        )
        if self._waits(pod, trial, rejections):
            return _told(TERMINATING)
        found = self._choose(pod, trial, rejections)
        if isinstance(found, PluginStatus):
            self._nominations.drop(pod.metadata.uid)
            return found
        return await self._preempt(pod, trial, found)

    # Who may

    def _is_ineligible(self, pod: Pod) -> str:
        if pod.spec.preemption_policy == "Never":
            return NEVER
        key = group_key(pod) if self._groups is not None else None
        group = self._groups.get(key) if self._groups is not None and key is not None else None
        return GANG if group is not None and group.spec.scheduling_policy.gang is not None else ""

    def _waits(self, pod: Pod, trial: Trial, rejections: Rejections) -> bool:
        """Whether the victims of an earlier preemption are still leaving: then nobody else has to."""
        name = self._nominations.node_of(pod.metadata.uid) or pod.status.nominated_node_name
        node, status = trial.nodes.get(name), rejections.get(name)
        if node is None or status is None or status.code is Code.UNRESOLVABLE:
            return False
        lower = [each for each in node.pods.values() if priority_of(each) < priority_of(pod)]
        leaving = [each for each in lower if each.metadata.deletion_timestamp]
        if not any(map(is_preempted, leaving)):
            return False
        if trial.can_fit and trial.check(node, leaving) is None:
            self._nominate(pod, trial, Candidate(name, (), tuple(leaving)))  # a scheduler before may have decided it
        return True

    # Who has to go

    def _choose(self, pod: Pod, trial: Trial, rejections: Rejections) -> Candidate | PluginStatus:
        now = format_time(self._handle.clock.now())
        statuses = dict.fromkeys(trial.nodes, NOT_HELPFUL)
        found: list[Candidate] = []
        for node in self._in_turn(trial, rejections):
            outcome = self._on_node(pod, trial, node, now)
            if isinstance(outcome, Candidate):
                found.append(outcome)
            else:
                statuses[node.name] = outcome
            if len(found) >= enough_candidates(len(trial.nodes)):
                break
        if found:
            return pick(found, now, preferred=self._nominations.node_of(pod.metadata.uid))
        failure = next((each for each in statuses.values() if not each.is_rejected), None)
        return failure or _told(of_each(statuses, len(statuses)).message)

    def _in_turn(self, trial: Trial, rejections: Rejections) -> list[NodeInfo]:
        """The nodes from a random one on, so that not always the same ones are tried first."""
        nodes = trial.candidates(rejections) if trial.can_fit and not trial.fits_already() else []
        start = self._handle.random.randrange(len(nodes)) if nodes else 0
        return nodes[start:] + nodes[:start]

    def _on_node(self, pod: Pod, trial: Trial, node: NodeInfo, now: str) -> Candidate | PluginStatus:
        there = self._cache.get(node.name)
        pods = there.pods.values() if there is not None else ()
        budgets = [each.view for each in self._handle.informers.of(BUDGETS).cache.all()]
        return select_victims(node.name, pods, priority_of(pod), lambda gone: trial.check(node, gone), now, budgets)

    # What is done

    async def _preempt(self, pod: Pod, trial: Trial, chosen: Candidate) -> PluginStatus:
        name = f"{pod.metadata.namespace}/{pod.metadata.name}"
        log.log(V[2], "pod %s preempts %d pods on node %s", name, len(chosen.victims), chosen.node)
        # Before the first await: what the victims leave must be kept when the next pod is tried.
        refusal = self._nominate(pod, trial, chosen)
        if refusal is not None:
            return refusal
        if chosen.victims:
            self._metrics.preemption_victims.observe(len(chosen.victims))
        try:
            await evict_all(self._handle, chosen.victims, pod, chosen.node)
        except DrakitError as error:
            self._nominations.drop(pod.metadata.uid)
            return PluginStatus.failed(f"preemption: {error}")
        await self._take_back(self._nominations.below(priority_of(pod), chosen.node))
        return SUCCESS

    def _nominate(self, pod: Pod, trial: Trial, chosen: Candidate) -> PluginStatus | None:
        """Nominate the pod and hold what the victims leave for it; a status if a plugin cannot hold it."""
        uid = pod.metadata.uid
        if self._nominations.node_of(uid) not in ("", chosen.node):
            self._nominations.drop(uid)
        state, node = trial.suppose(trial.nodes[chosen.node], chosen.gone)
        state.assumed = on_node(pod, chosen.node)
        for each in self._keeps:
            status = each.hold(state, pod, node)
            if not status.ok:
                return status
        self._nominations.put(state.assumed)
        return None

    async def _take_back(self, pods: Sequence[Pod]) -> None:
        """Pods of lower priority that wait for the same node may not fit there any more: let them look elsewhere."""
        for pod in pods:
            self._nominations.drop(pod.metadata.uid)
            found = self._handle.informers.of(PODS).cache.get(Key(pod.metadata.namespace, pod.metadata.name))
            if found is not None and found.view.metadata.uid == pod.metadata.uid:
                await patch_status(self._handle.client, found, not_nominated())


class Preemptions:
    """Makes the preemption of each profile that wants it."""

    def __init__(
        self,
        config: SchedulerConfiguration,
        handle: Handle,
        cache: SchedulerCache,
        nominations: Nominations,
        metrics: SchedulerMetrics,
    ) -> None:
        self._wanted = {each.scheduler_name for each in config.profiles if _is_wanted(each.args)}
        self._handle = handle
        self._cache = cache
        self._nominations = nominations
        self._metrics = metrics
        self._keeps: dict[int, PreemptionExtensions] = {}
        if self._wanted:
            handle.informers.of(BUDGETS)
            handle.informers.of(PODS).subscribe(nominations.follow)
            nominations.on_end(self._let_go)

    def complete(self, profile: Profile) -> Profile:
        """The profile; with preemption as the last thing that is tried, if it wants that."""
        if profile.name not in self._wanted:
            return profile
        keeps = [each for each in profile.plugins if isinstance(each, PreemptionExtensions)]
        self._keeps |= {id(each): each for each in keeps}
        made = Preemption(profile, keeps, self._handle, self._cache, self._nominations, self._metrics)
        return profile.with_post_filter(made)

    def _let_go(self, pod: Pod, _: bool) -> None:
        for each in self._keeps.values():
            each.let_go(pod.metadata.uid)


def _told(why: str) -> PluginStatus:
    return PluginStatus.unschedulable(f"preemption: {why}")


def _is_wanted(args: Mapping[str, Args]) -> bool:
    found = args.get(DYNAMIC_RESOURCES)
    return isinstance(found, DynamicResourcesArgs) and found.preemption
