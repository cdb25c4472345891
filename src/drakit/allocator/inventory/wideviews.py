"""Views of the pools that many nodes can access. Nodes to which these pools look the same share their views.

In:  the pools, and a node.
Out: the views of that node in the order of evaluation.

Two nodes see the same when the same node selectors match them and no slice or device names one of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from drakit.allocator.inventory.deadlines import check_time
from drakit.allocator.inventory.pools import NodeLabels, Pool, PoolKey, PoolView, Views
from drakit.base.nodeselectors import NodeSelector, matches

_MAX_KNOWN = 20_000


class WideViews:
    """Valid for the pools that it was made with. When one of them changes, a new object is needed."""

    def __init__(self, pools: Iterable[Pool]) -> None:
        self._pools = tuple(pools)
        self._selectors = tuple(frozenset[NodeSelector]().union(*(self._read(pool) for pool in self._pools)))
        self._named = frozenset[str]().union(*(pool.named for pool in self._pools))
        self._known: dict[object, Views] = {}

    def _read(self, pool: Pool) -> frozenset[NodeSelector]:
        check_time()
        return pool.selectors

    def of(self, node: NodeLabels) -> Views:
        matched = tuple([matches(each, name=node.name, labels=node.labels) for each in self._selectors])
        key = (matched, node.name if node.name in self._named else None)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            found = self._known[key] = ordered([self._view(pool, node) for pool in self._pools])
        return found

    def _view(self, pool: Pool, node: NodeLabels) -> PoolView | None:
        """A view is made once and kept by its pool, so whoever runs out of time goes on there."""
        check_time()
        return pool.view(node)


def ordered(views: Iterable[PoolView | None]) -> Views:
    """Pools without binding conditions first, then by driver and pool name."""
    return tuple(sorted((view for view in views if view is not None), key=_order))


def _order(view: PoolView) -> tuple[bool, PoolKey]:
    return view.binding, view.key
