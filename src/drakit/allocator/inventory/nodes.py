"""The state of a node's devices: the pools that it sees, and what is in use of them.

In:  views and usages from the inventory.
Out: one object that stands for them until something changes.
"""

from __future__ import annotations

from typing import Any

from drakit.allocator.inventory.pools import Views
from drakit.allocator.inventory.usage import Usage


class NodeDevices:
    """Known by identity.

    Invariant: as long as an inventory gives the same object for a node, nothing about the node's devices has changed.
    So whatever was found out about the node may be kept in `answers`, and goes with the state: there is nothing to
    invalidate.
    """

    __slots__ = ("answers", "usages", "views")

    def __init__(self, views: Views, usages: tuple[Usage, ...]) -> None:
        self.views = views
        self.usages = usages
        self.answers: dict[object, Any] = {}
