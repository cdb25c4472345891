"""The state of a node's devices: the pools that it sees, and what is in use of them.

In:  views and usages from the inventory.
Out: one object that stands for them until something changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from drakit.allocator.inventory.pools import PoolKey, PoolView, Views
from drakit.allocator.inventory.usage import Usage, Usages


class NodeDevices:
    """Compared by identity.

    Invariant: as long as an inventory returns the same object for a node, nothing about the node's devices has changed.
    So results about the node are cached in `answers`, and go together with this object: no entry is ever invalidated.
    """

    __slots__ = ("_positions", "answers", "usages", "views")

    def __init__(self, views: Views, usages: Usages) -> None:
        self.views = views
        self.usages = usages
        self.answers: dict[object, Any] = {}
        self._positions: dict[PoolKey, int] | None = None

    def after(self, changed: Iterable[PoolKey], usage: Callable[[PoolView], Usage]) -> NodeDevices:
        """The state after a change in the use of these pools. Everything else is the same."""
        if self._positions is None:
            self._positions = {view.key: position for position, view in enumerate(self.views)}
        found = {self._positions.get(key) for key in changed}
        made = NodeDevices(
            self.views, self.usages.replaced({each: usage(self.views[each]) for each in found if each is not None})
        )
        made._positions = self._positions
        return made
