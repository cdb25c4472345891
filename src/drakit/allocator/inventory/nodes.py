"""The state of a node's devices: the pools that it sees, and what is in use of them.

In:  views and usages from the inventory.
Out: one object that stands for them until something changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from drakit.allocator.inventory.pools import PoolKey, PoolView, Views
from drakit.allocator.inventory.usage import Usage


class NodeDevices:
    """Known by identity.

    Invariant: as long as an inventory gives the same object for a node, nothing about the node's devices has changed.
    So whatever was found out about the node may be kept in `answers`, and goes with the state: there is nothing to
    invalidate.
    """

    __slots__ = ("_positions", "answers", "usages", "views")

    def __init__(self, views: Views, usages: tuple[Usage, ...]) -> None:
        self.views = views
        self.usages = usages
        self.answers: dict[object, Any] = {}
        self._positions: dict[PoolKey, int] | None = None

    def after(self, changed: Iterable[PoolKey], usage: Callable[[PoolView], Usage]) -> NodeDevices:
        """The state in which the use of some pools has changed, and nothing else."""
        if self._positions is None:
            self._positions = {view.key: position for position, view in enumerate(self.views)}
        usages = list(self.usages)
        for position in {self._positions.get(key) for key in changed}:
            if position is not None:
                usages[position] = usage(self.views[position])
        made = NodeDevices(self.views, tuple(usages))
        made._positions = self._positions
        return made
