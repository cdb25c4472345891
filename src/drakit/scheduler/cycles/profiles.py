"""The plugins of one profile by extension point, in the order of the configuration.

In:  a lineup of plugins.
Out: a `Profile`: what to call, in order; its twin, in which every call is measured, serves one attempt in ten.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from drakit.api.objects.pods import Pod
from drakit.scheduler.config import SchedulerConfiguration
from drakit.scheduler.framework import (
    CycleState,
    Handle,
    Interest,
    NodeInfo,
    Plugin,
    Rejections,
    Status,
    WaitsBeforeBind,
)
from drakit.scheduler.metrics.attempts import SchedulerMetrics
from drakit.scheduler.metrics.timing import Stopwatch
from drakit.scheduler.plugins import Lineup, Maker, make_lineup

Steps = tuple[tuple[str, Callable[..., Any]], ...]
"""(plugin, what it does at this point), in order."""
PreFilterStep = tuple[str, Callable[[CycleState, Pod], tuple[Status, frozenset[str] | None]]]
FilterStep = tuple[str, Callable[[CycleState, Pod, Sequence[NodeInfo]], Rejections]]
PostFilterCall = Callable[[CycleState, Pod, Rejections], Awaitable[Status]]
PostFilterStep = tuple[str, PostFilterCall]
ScoreStep = tuple[str, Callable[[CycleState, Pod, Sequence[NodeInfo]], Sequence[int]], int]
ReserveStep = tuple[str, Callable[[CycleState, Pod, NodeInfo], Status]]
WriteStep = tuple[str, Callable[[CycleState, Pod, str], Awaitable[Status]]]
UnreserveStep = tuple[str, Callable[[CycleState, Pod, str], Awaitable[None]]]


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """`percentage` is the part of the nodes after which a search may stop; zero: it depends on their number."""

    name: str
    percentage: int
    pre_enqueue: tuple[tuple[str, Callable[[Pod], Status]], ...]
    pre_filters: tuple[PreFilterStep, ...]
    filters: tuple[FilterStep, ...]
    post_filters: tuple[PostFilterStep, ...]
    scores: tuple[ScoreStep, ...]
    reserves: tuple[ReserveStep, ...]
    unreserves: tuple[UnreserveStep, ...]
    permits: tuple[ReserveStep, ...]
    pre_binds: tuple[WriteStep, ...]
    binds: tuple[WriteStep, ...]
    waits: tuple[WaitsBeforeBind, ...]

    def with_post_filter(self, plugin: str, post_filter: PostFilterCall) -> Profile:
        """And that, after all others."""
        return msgspec.structs.replace(self, post_filters=(*self.post_filters, (plugin, post_filter)))


Complete = Callable[[Profile, Sequence[Plugin]], Profile]


def compose(lineup: Lineup, *, percentage: int = 0, stopwatch: Stopwatch | None = None) -> Profile:
    """With a stopwatch, every call of a plugin is measured."""

    def steps(plugins: Iterable[Plugin], method: str) -> Steps:
        calls = [(each.name, getattr(each, method)) for each in plugins]
        if stopwatch is None:
            return tuple(calls)
        point = _label(method)
        return tuple((plugin, stopwatch.measured(call, plugin, point)) for plugin, call in calls)

    weights = {plugin.name: weight for plugin, weight in lineup.score}
    scores = steps((plugin for plugin, _ in lineup.score), "score")
    return Profile(
        name=lineup.scheduler_name,
        percentage=percentage,
        pre_enqueue=steps(lineup.pre_enqueue, "pre_enqueue"),
        pre_filters=steps(lineup.pre_filter, "pre_filter"),
        filters=steps(lineup.filter, "filter"),
        post_filters=steps(lineup.post_filter, "post_filter"),
        scores=tuple((plugin, call, weights[plugin]) for plugin, call in scores),
        reserves=steps(lineup.reserve, "reserve"),
        unreserves=steps(lineup.reserve[::-1], "unreserve"),
        permits=steps(lineup.permit, "permit"),
        pre_binds=steps(lineup.pre_bind, "pre_bind"),
        binds=steps(lineup.bind, "bind"),
        waits=tuple(each for each in lineup.pre_bind if isinstance(each, WaitsBeforeBind)),
    )


def _label(method: str) -> str:
    """`pre_filter` as figures name it: `PreFilter`."""
    return "".join(word.capitalize() for word in method.split("_"))


class Profiles:
    """By the name of the scheduler that pods ask for.

    Invariant: profiles that use a plugin with the same arguments share it, so what it reserves counts for all. Of
    plugins of one name that are not shared, each has a say in which events wake a pod.
    """

    def __init__(
        self,
        config: SchedulerConfiguration,
        handle: Handle,
        makers: Mapping[str, Maker],
        metrics: SchedulerMetrics,
        *,
        complete: Complete | None = None,
    ) -> None:
        """`complete` makes of a profile and its plugins the profile that is used."""
        completed = complete or (lambda profile, _: profile)
        shared = {name: _shared(maker) for name, maker in makers.items()}
        lineups = [make_lineup(each, handle, makers=shared) for each in config.profiles]
        stopwatch = Stopwatch(handle.clock, metrics)
        parts = [each.percentage_of_nodes_to_score for each in config.profiles]
        pairs = list(zip(lineups, parts, strict=True))
        self._plain = {
            each.scheduler_name: completed(compose(each, percentage=part), each.plugins) for each, part in pairs
        }
        self._measured = {
            each.scheduler_name: completed(compose(each, percentage=part, stopwatch=stopwatch), each.plugins)
            for each, part in pairs
        }
        self.names = frozenset(self._plain)
        self.interests = _all_interests(lineups)

    def get(self, name: str, *, measured: bool = False) -> Profile | None:
        return (self._measured if measured else self._plain).get(name)


def _all_interests(lineups: Sequence[Lineup]) -> dict[str, tuple[Interest, ...]]:
    """By plugin, what those of that name are interested in."""
    distinct = {id(plugin): (plugin.name, each) for each in lineups for plugin in each.plugins}
    found: dict[str, tuple[Interest, ...]] = {}
    for name, each in distinct.values():
        found[name] = (*found.get(name, ()), *each.interests[name])
    return found


def _shared(maker: Maker) -> Maker:
    made: list[tuple[Handle, Any, Plugin]] = []

    def make(handle: Handle, args: Any) -> Plugin:
        found = next((plugin for known, said, plugin in made if known is handle and said == args), None)
        if found is None:
            found = maker(handle, args)
            made.append((handle, args, found))
        return found

    return make
