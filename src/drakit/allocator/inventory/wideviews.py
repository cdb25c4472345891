"""Views of the pools that many nodes can access. Nodes to which these pools look the same share their views.

In:  the pools, and a node.
Out: the views of that node in the order of evaluation.

Two nodes see the same when the same node selectors match them and no slice or device names one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from drakit.allocator.inventory.deadlines import check_time
from drakit.allocator.inventory.pools import NodeLabels, Pool, PoolKey, PoolView, Views
from drakit.base.nodeselectors import NodeSelector, matches

_MAX_KNOWN = 20_000
_MAX_KEPT = 8
"""Sorts of nodes whose views are kept when a pool changes: each is a copy of references to all pools."""


class WideViews:
    """Valid for the pools that it was made with. When some of them change, `with_pools` makes the next one.

    Invariant: in `_views`, by what tells nodes apart, are views of these very pools. What is missing is made when it is
    asked for; whoever runs out of time goes on there.
    """

    def __init__(self, pools: Iterable[Pool]) -> None:
        self._pools = {pool.key: pool for pool in pools}
        self._selectors = tuple(frozenset[NodeSelector]().union(*(self._read(each) for each in self._pools.values())))
        self._named = frozenset[str]().union(*(pool.named for pool in self._pools.values()))
        self._known: dict[object, Views] = {}
        self._views: dict[object, dict[PoolKey, PoolView | None]] = {}

    def _read(self, pool: Pool) -> frozenset[NodeSelector]:
        check_time()
        return pool.selectors

    def with_pools(self, changed: Mapping[PoolKey, Pool]) -> WideViews:
        """After a change of some pools that are among them."""
        pools = {**self._pools, **changed}
        for key, pool in changed.items():
            before = self._pools[key]
            if (before.selectors, before.named) != (pool.selectors, pool.named):
                return WideViews(pools.values())  # something else tells nodes apart
        made = WideViews.__new__(WideViews)
        made._pools, made._selectors, made._named, made._known = pools, self._selectors, self._named, {}
        made._views = {key: views.copy() for key, views in list(self._views.items())[-_MAX_KEPT:]}
        for views in made._views.values():
            for key in changed:
                views.pop(key, None)
        return made

    def of(self, node: NodeLabels) -> Views:
        matched = tuple([matches(each, name=node.name, labels=node.labels) for each in self._selectors])
        key = (matched, node.name if node.name in self._named else None)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
                self._views.clear()
            found = self._known[key] = ordered(self._seen(self._views.setdefault(key, {}), node))
        return found

    def _seen(self, views: dict[PoolKey, PoolView | None], node: NodeLabels) -> Iterable[PoolView | None]:
        for key, pool in self._pools.items():
            if key not in views:
                check_time()
                views[key] = pool.view(node)
        return views.values()


def ordered(views: Iterable[PoolView | None]) -> Views:
    """Pools without binding conditions first, then by driver and pool name."""
    return tuple(sorted((view for view in views if view is not None), key=_order))


def _order(view: PoolView) -> tuple[bool, PoolKey]:
    return view.binding, view.key
