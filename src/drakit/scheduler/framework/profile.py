"""A profile: the plugins of one scheduler name, by extension point, in the order in which they are called.

In:  plugins that were made from a configuration (`plugins.profiles`).
Out: what queue and cycles call. They call a plugin's own methods; nothing stands in between.
"""

from __future__ import annotations

import msgspec

from drakit.scheduler.framework.plugins import (
    Bind,
    Filter,
    Permit,
    Plugin,
    PostFilter,
    PreBind,
    PreEnqueue,
    PreFilter,
    Reserve,
    Score,
    WaitsBeforeBind,
)


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """`plugins` has all, each once; `score` has each plugin with its weight. `reserve` is undone in reverse order.

    `percentage` is the part of the nodes after which a search may stop; zero: it depends on their number. `waits` are
    those of `pre_bind` that may wait for somebody.
    """

    name: str
    percentage: int = 0
    plugins: tuple[Plugin, ...] = ()
    pre_enqueue: tuple[PreEnqueue, ...] = ()
    pre_filter: tuple[PreFilter, ...] = ()
    filter: tuple[Filter, ...] = ()
    post_filter: tuple[PostFilter, ...] = ()
    score: tuple[tuple[Score, int], ...] = ()
    reserve: tuple[Reserve, ...] = ()
    permit: tuple[Permit, ...] = ()
    pre_bind: tuple[PreBind, ...] = ()
    bind: tuple[Bind, ...] = ()
    waits: tuple[WaitsBeforeBind, ...] = ()

    def with_post_filter(self, plugin: PostFilter) -> Profile:
        """The same profile with one more PostFilter plugin, at the end."""
        return msgspec.structs.replace(self, post_filter=(*self.post_filter, plugin))
