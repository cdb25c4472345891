"""How long plugins take: of every attempt each extension point, of some attempts each call of each plugin.

In:  the ends of extension points; a profile.
Out: `SchedulerMetrics` told how long they took and how they ended; the same profile with plugins that are measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from drakit.api.objects.pods import Pod
from drakit.base.clock import Clock
from drakit.scheduler.framework import Code, CycleState, NodeInfo, PluginStatus, Profile, Rejections
from drakit.scheduler.metrics.attempts import SchedulerMetrics

CODES = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}


class Laps:
    """The extension points of one attempt, one after the other."""

    __slots__ = ("_began", "_clock", "_metrics", "_profile")

    def __init__(self, clock: Clock, metrics: SchedulerMetrics, profile: str) -> None:
        self._clock = clock
        self._metrics = metrics
        self._profile = profile
        self._began = clock.monotonic()

    def end(self, point: str, code: Code = Code.SUCCESS) -> None:
        """A point has ended, and another begins."""
        now = self._clock.monotonic()
        self._metrics.points(point, CODES[code], self._profile).observe(now - self._began)
        self._began = now


class TimedPlugin:
    """A plugin each call of which is measured. It stands only at points where the plugin has a part."""

    def __init__(self, plugin: Any, clock: Clock, metrics: SchedulerMetrics) -> None:
        self.name: str = plugin.name
        self._plugin = plugin
        self._clock = clock
        self._metrics = metrics

    def pre_filter(self, state: CycleState, pod: Pod) -> tuple[PluginStatus, frozenset[str] | None]:
        began = self._clock.monotonic()
        answer: tuple[PluginStatus, frozenset[str] | None] = self._plugin.pre_filter(state, pod)
        self._tell("PreFilter", answer[0].code, began)
        return answer

    def filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Rejections:
        began = self._clock.monotonic()
        rejections: Rejections = self._plugin.filter(state, pod, nodes)
        nowhere = bool(nodes) and len(rejections) == len(nodes)
        self._tell("Filter", Code.UNSCHEDULABLE if nowhere else Code.SUCCESS, began)
        return rejections

    async def post_filter(self, state: CycleState, pod: Pod, rejections: Rejections) -> PluginStatus:
        began = self._clock.monotonic()
        return self._ended("PostFilter", await self._plugin.post_filter(state, pod, rejections), began)

    def score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Sequence[int] | int:
        began = self._clock.monotonic()
        scores: Sequence[int] | int = self._plugin.score(state, pod, nodes)
        self._tell("Score", Code.SUCCESS, began)
        return scores

    def reserve(self, state: CycleState, pod: Pod, node: NodeInfo) -> PluginStatus:
        began = self._clock.monotonic()
        return self._ended("Reserve", self._plugin.reserve(state, pod, node), began)

    async def unreserve(self, state: CycleState, pod: Pod, node: str) -> None:
        began = self._clock.monotonic()
        await self._plugin.unreserve(state, pod, node)
        self._tell("Unreserve", Code.SUCCESS, began)

    def permit(self, state: CycleState, pod: Pod, node: NodeInfo) -> PluginStatus:
        began = self._clock.monotonic()
        return self._ended("Permit", self._plugin.permit(state, pod, node), began)

    async def pre_bind(self, state: CycleState, pod: Pod, node: str) -> PluginStatus:
        began = self._clock.monotonic()
        return self._ended("PreBind", await self._plugin.pre_bind(state, pod, node), began)

    async def bind(self, state: CycleState, pod: Pod, node: str) -> PluginStatus:
        began = self._clock.monotonic()
        return self._ended("Bind", await self._plugin.bind(state, pod, node), began)

    def _ended(self, point: str, status: PluginStatus, began: float) -> PluginStatus:
        self._tell(point, status.code, began)
        return status

    def _tell(self, point: str, code: Code, began: float) -> None:
        self._metrics.executions(self.name, point, CODES[code]).observe(self._clock.monotonic() - began)


def timed(profile: Profile, clock: Clock, metrics: SchedulerMetrics) -> Profile:
    """The same profile, with every call of a plugin measured. Plugins before the queue are not part of an attempt."""
    made = {id(each): TimedPlugin(each, clock, metrics) for each in profile.plugins}

    def measured(plugins: Sequence[object]) -> tuple[TimedPlugin, ...]:
        return tuple(made[id(each)] for each in plugins)

    return msgspec.structs.replace(
        profile,
        pre_filter=measured(profile.pre_filter),
        filter=measured(profile.filter),
        post_filter=measured(profile.post_filter),
        score=tuple((made[id(each)], weight) for each, weight in profile.score),
        reserve=measured(profile.reserve),
        permit=measured(profile.permit),
        pre_bind=measured(profile.pre_bind),
        bind=measured(profile.bind),
    )
