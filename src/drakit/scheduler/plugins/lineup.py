"""The plugins of one profile, made and sorted by extension point.

In:  a profile of the configuration, the handle, the registry.
Out: per extension point the plugins that have a part in it, in order. A plugin is made once per profile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from drakit.base.errors import UsageError
from drakit.scheduler.config.model import NOTHING_SAID, ProfileConfig
from drakit.scheduler.config.names import DYNAMIC_RESOURCES, PRIORITY_SORT
from drakit.scheduler.framework import (
    Binder,
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
    Reserve,
    Score,
)
from drakit.scheduler.framework.events import EVERYTHING
from drakit.scheduler.plugins.registry import MAKERS, Maker

P = TypeVar("P")
_ALLOCATING = ("preFilter", "filter", "reserve", "preBind")
"""The points without which no pod gets a device."""
_REFUSING = (PreEnqueue, PreFilter, Filter, Reserve, Permit, PreBind, Binder)


class Lineup(msgspec.Struct, frozen=True):
    """`score` has each plugin with its weight; `plugins` has all, each once."""

    scheduler_name: str
    plugins: tuple[Plugin, ...]
    pre_enqueue: tuple[PreEnqueue, ...]
    pre_filter: tuple[PreFilter, ...]
    filter: tuple[Filter, ...]
    post_filter: tuple[PostFilter, ...]
    score: tuple[tuple[Score, int], ...]
    reserve: tuple[Reserve, ...]
    permit: tuple[Permit, ...]
    pre_bind: tuple[PreBind, ...]
    bind: tuple[Binder, ...]

    @property
    def interests(self) -> Mapping[str, Sequence[Interest]]:
        """By plugin, the events that can help a pod that it refused; one that does not say may be helped by any."""
        return {each.name: _interests(each) for each in self.plugins}


def _interests(plugin: Plugin) -> tuple[Interest, ...]:
    if isinstance(plugin, EnqueueExtensions):
        return tuple(plugin.interests())
    return (Interest(EVERYTHING),) if isinstance(plugin, _REFUSING) else ()


def make_lineup(profile: ProfileConfig, handle: Handle, *, makers: Mapping[str, Maker] = MAKERS) -> Lineup:
    """Make the plugins of a profile. Raise UsageError for one that is turned on where it has no part, or is missed.

    What nobody makes is left out: the configuration refuses names that it does not know, and warns of the others.
    """
    others = handle if all(DYNAMIC_RESOURCES in profile.at(each) for each in _ALLOCATING) else handle.without_devices()
    made = {
        name: makers[name](handle if name == DYNAMIC_RESOURCES else others, profile.args.get(name))
        for name in profile.plugins
        if name in makers
    }

    def at(point: str, protocol: type[P]) -> tuple[P, ...]:
        return _at(profile, point, protocol, made)

    binders = at("bind", Binder)  # type: ignore[type-abstract]
    if not binders:
        raise UsageError(f'profile "{profile.scheduler_name}": at least one bind plugin is needed')
    if PRIORITY_SORT not in profile.at("queueSort"):
        raise UsageError(f'profile "{profile.scheduler_name}": a queue sort plugin is needed: {PRIORITY_SORT}')
    return Lineup(
        scheduler_name=profile.scheduler_name,
        plugins=tuple(made.values()),
        pre_enqueue=at("preEnqueue", PreEnqueue),  # type: ignore[type-abstract]
        pre_filter=at("preFilter", PreFilter),  # type: ignore[type-abstract]
        filter=at("filter", Filter),  # type: ignore[type-abstract]
        post_filter=at("postFilter", PostFilter),  # type: ignore[type-abstract]
        score=tuple((each, profile.weight(each.name)) for each in at("score", Score)),  # type: ignore[type-abstract]
        reserve=at("reserve", Reserve),  # type: ignore[type-abstract]
        permit=at("permit", Permit),  # type: ignore[type-abstract]
        pre_bind=at("preBind", PreBind),  # type: ignore[type-abstract]
        bind=binders,
    )


def _at(profile: ProfileConfig, point: str, protocol: type[P], made: Mapping[str, Any]) -> tuple[P, ...]:
    there = [made[name] for name in profile.at(point) if name in made]
    own = {use.name for use in profile.points.get(point, NOTHING_SAID).enabled}
    for each in there:
        if each.name in own and not isinstance(each, protocol):
            raise UsageError(
                f'profile "{profile.scheduler_name}": plugin "{each.name}" has no part in {point}: turn it on elsewhere'
            )
    return tuple(each for each in there if isinstance(each, protocol))
