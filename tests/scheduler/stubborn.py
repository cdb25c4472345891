"""A plugin that does at each extension point what a test wants, and remembers what it was asked."""

# ruff: noqa: ARG002 - what extension points are given

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from drakit.api.objects.pods import Pod
from drakit.base.gates import FeatureGates
from drakit.scheduler.config import EnabledPlugin, PluginSet, SchedulerConfiguration, default_configuration
from drakit.scheduler.framework import (
    SUCCESS,
    ClusterEvent,
    CycleState,
    Handle,
    Interest,
    NodeInfo,
    PluginStatus,
    Rejections,
)
from drakit.scheduler.plugins import MAKERS, Maker

NAME = "Stubborn"


class Stubborn:
    """`answers` by extension point: a status, or statuses one after the other; SUCCESS when there are none left."""

    name = NAME

    def __init__(self, hopes: Sequence[ClusterEvent] = (), **answers: Any) -> None:
        self.asked: list[str] = []
        self.hold: asyncio.Event | None = None
        self.will_wait = False
        self._hopes = hopes
        self._answers = {
            point: [each] if isinstance(each, PluginStatus) else list(each) for point, each in answers.items()
        }

    def interests(self) -> Sequence[Interest]:
        return [Interest(each) for each in self._hopes]

    def pre_filter(self, state: CycleState, pod: Pod) -> tuple[PluginStatus, frozenset[str] | None]:
        return self._answer("pre_filter", pod), None

    def filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Rejections:
        answer = self._answer("filter", pod)
        return {} if answer.ok else {node.name: answer for node in nodes}

    async def post_filter(self, state: CycleState, pod: Pod, rejections: Rejections) -> PluginStatus:
        return self._answer("post_filter", pod)

    def score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Sequence[int]:
        return [0] * len(nodes)

    def reserve(self, state: CycleState, pod: Pod, node: NodeInfo) -> PluginStatus:
        return self._answer("reserve", pod)

    async def unreserve(self, state: CycleState, pod: Pod, node: str) -> None:
        self.asked.append(f"unreserve {pod.metadata.name}")

    def permit(self, state: CycleState, pod: Pod, node: NodeInfo) -> PluginStatus:
        return self._answer("permit", pod)

    def waits(self, state: CycleState, pod: Pod, node: str) -> bool:
        return self.will_wait

    async def pre_bind(self, state: CycleState, pod: Pod, node: str) -> PluginStatus:
        if self.hold is not None:
            await self.hold.wait()
        return self._answer("pre_bind", pod)

    def _answer(self, point: str, pod: Pod) -> PluginStatus:
        self.asked.append(f"{point} {pod.metadata.name}")
        left = self._answers.get(point)
        answer = left.pop(0) if left else SUCCESS
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, PluginStatus)
        return answer

    @property
    def options(self) -> Mapping[str, Any]:
        """For a scheduler with this plugin after all others."""

        def make(_: Handle, __: Any) -> Stubborn:
            return self

        makers: dict[str, Maker] = {**MAKERS, NAME: make}
        return {"makers": makers, "config": configured()}


def configured() -> SchedulerConfiguration:
    """The default configuration, and this plugin at every point."""
    config = default_configuration(FeatureGates.all_on())
    (profile,) = config.profiles
    uses = PluginSet((*profile.multi_point.enabled, EnabledPlugin(NAME)))
    return replace(config, profiles=(replace(profile, multi_point=uses),))
