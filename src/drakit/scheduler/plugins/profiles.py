"""Profiles: the plugins of each profile of a configuration, made and sorted by extension point.

In:  a configuration, the handle, who makes which plugin.
Out: a `Profile` per scheduler name, and its twin, in which every call is measured, for one attempt in ten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from drakit.base.errors import UsageError
from drakit.scheduler.config.model import NOTHING_SAID, ProfileConfig, SchedulerConfiguration
from drakit.scheduler.config.names import DYNAMIC_RESOURCES, PRIORITY_SORT
from drakit.scheduler.framework import (
    Bind,
    EnqueueExtensions,
    Filter,
    Handle,
    Interest,
    Permit,
    Plugin,
    PostFilter,
    PreBind,
    PreEnqueue,
    PreFilter,
    Profile,
    Reserve,
    Score,
    WaitsBeforeBind,
)
from drakit.scheduler.framework.events import EVERYTHING
from drakit.scheduler.metrics import SchedulerMetrics
from drakit.scheduler.metrics.timing import timed
from drakit.scheduler.plugins.registry import MAKERS, Maker

P = TypeVar("P")
Complete = Callable[[Profile], Profile]
_ALLOCATING = ("preFilter", "filter", "reserve", "preBind")
"""The extension points at which DynamicResources is needed to allocate devices."""
_REFUSING = (PreEnqueue, PreFilter, Filter, Reserve, Permit, PreBind, Bind)


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
        complete: Complete = lambda profile: profile,
    ) -> None:
        """`complete` adds to a profile what is made elsewhere: preemption."""
        shared = {name: _shared(maker) for name, maker in makers.items()}
        made = [make_profile(each, handle, makers=shared) for each in config.profiles]
        self._plain = {each.name: complete(each) for each in made}
        self._timed = {each.name: complete(timed(each, handle.clock, metrics)) for each in made}
        self.names = frozenset(self._plain)
        self.interests = _interests(made)
        self.pre_enqueue = {each.name: each.pre_enqueue for each in made}

    def get(self, name: str, *, measured: bool = False) -> Profile | None:
        return (self._timed if measured else self._plain).get(name)


def make_profile(config: ProfileConfig, handle: Handle, *, makers: Mapping[str, Maker] = MAKERS) -> Profile:
    """Make the plugins of a profile. Raise UsageError for one at a point that it does not implement, or a missing one.

    A plugin without a maker is left out: the configuration refuses unknown names, and warns of the others.
    """
    others = handle if all(DYNAMIC_RESOURCES in config.at(each) for each in _ALLOCATING) else handle.without_devices()
    made = {
        name: makers[name](handle if name == DYNAMIC_RESOURCES else others, config.args.get(name))
        for name in config.plugins
        if name in makers
    }

    def at(point: str, protocol: type[P]) -> tuple[P, ...]:
        return _at(config, point, protocol, made)

    # Checked here and not when a pod is to be bound: a scheduler that can bind nothing must not start.
    binders = at("bind", Bind)  # type: ignore[type-abstract]
    if not binders:
        raise UsageError(f'profile "{config.scheduler_name}": at least one bind plugin is needed')
    if PRIORITY_SORT not in config.at("queueSort"):
        raise UsageError(f'profile "{config.scheduler_name}": a queue sort plugin is needed: {PRIORITY_SORT}')
    pre_bind = at("preBind", PreBind)  # type: ignore[type-abstract]
    return Profile(
        name=config.scheduler_name,
        percentage=config.percentage_of_nodes_to_score,
        plugins=tuple(made.values()),
        pre_enqueue=at("preEnqueue", PreEnqueue),  # type: ignore[type-abstract]
        pre_filter=at("preFilter", PreFilter),  # type: ignore[type-abstract]
        filter=at("filter", Filter),  # type: ignore[type-abstract]
        post_filter=at("postFilter", PostFilter),  # type: ignore[type-abstract]
        score=tuple((each, config.weight(each.name)) for each in at("score", Score)),  # type: ignore[type-abstract]
        reserve=at("reserve", Reserve),  # type: ignore[type-abstract]
        permit=at("permit", Permit),  # type: ignore[type-abstract]
        pre_bind=pre_bind,
        bind=binders,
        waits=tuple(each for each in pre_bind if isinstance(each, WaitsBeforeBind)),
    )


def _at(config: ProfileConfig, point: str, protocol: type[P], made: Mapping[str, Any]) -> tuple[P, ...]:
    there = [made[name] for name in config.at(point) if name in made]
    own = {use.name for use in config.points.get(point, NOTHING_SAID).enabled}
    for each in there:
        if each.name in own and not isinstance(each, protocol):
            raise UsageError(
                f'profile "{config.scheduler_name}": plugin "{each.name}" has no part in {point}: turn it on elsewhere'
            )
    return tuple(each for each in there if isinstance(each, protocol))


def interests_of(plugin: Plugin) -> tuple[Interest, ...]:
    """The events that can help a pod that the plugin refused; one that does not say may be helped by any."""
    if isinstance(plugin, EnqueueExtensions):
        return tuple(plugin.interests())
    return (Interest(EVERYTHING),) if isinstance(plugin, _REFUSING) else ()


def _interests(profiles: list[Profile]) -> dict[str, tuple[Interest, ...]]:
    """By plugin name, the events that plugins of that name are interested in."""
    distinct = {id(plugin): plugin for each in profiles for plugin in each.plugins}
    found: dict[str, tuple[Interest, ...]] = {}
    for plugin in distinct.values():
        found[plugin.name] = (*found.get(plugin.name, ()), *interests_of(plugin))
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
