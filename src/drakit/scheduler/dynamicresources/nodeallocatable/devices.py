"""The devices that take something of their node, by name.

In:  slices as they come and go, and the inventory that has them all.
Out: whether there is any such device at all (most clusters have none, and pay nothing); a device by driver, pool and
     name, as its pool's newest generation tells it; and which nodes are alike.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from drakit.allocator import Inventory, Pool, PoolKey
from drakit.api import Device, ResourceSlice

NOTHING = 0
_MAX_KINDS = 4096


class MappedDevices:
    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._slices: dict[str, PoolKey] = {}
        self._pools: dict[PoolKey, set[str]] = {}
        self._indexes: dict[PoolKey, tuple[Pool, Mapping[str, Device]]] = {}
        self._kinds: dict[Hashable, int] = {}
        self._kind_of: dict[str, tuple[object, int]] = {}

    def put_slice(self, each: ResourceSlice) -> None:
        name = each.metadata.name
        self.remove_slice(name)
        if any(device.node_allocatable_resource_mappings for device in each.spec.devices):
            key = (each.spec.driver, each.spec.pool.name)
            self._slices[name] = key
            self._pools.setdefault(key, set()).add(name)

    def remove_slice(self, name: str) -> None:
        key = self._slices.pop(name, None)
        if key is None:
            return
        self._pools[key].discard(name)
        if not self._pools[key]:
            del self._pools[key]
            self._indexes.pop(key, None)

    def __bool__(self) -> bool:
        """Whether any device takes something of its node."""
        return bool(self._pools)

    def kind_of(self, node: str) -> int:
        """The same for nodes whose devices take the same, one by one; NOTHING when none of a node's takes anything."""
        views = self._inventory.views(node)
        known = self._kind_of.get(node)
        # What a node sees is immutable, so the same object is of the same kind.
        if known is not None and known[0] is views:
            return known[1]
        if len(self._kinds) >= _MAX_KINDS:
            self._kinds.clear()
            self._kind_of.clear()
        kind = NOTHING
        if any(device.node_allocatable_resource_mappings for view in views for device in view.devices):
            # DeviceResources tell all of a device but its name, place and attributes.
            alike = tuple(view.content.resources.devices for view in views)
            kind = self._kinds.setdefault(alike, len(self._kinds) + 1)
        self._kind_of[node] = (views, kind)
        return kind

    def in_pool(self, driver: str, pool: str) -> bool:
        """Whether some device of the pool takes something of its node."""
        return (driver, pool) in self._pools

    def find(self, driver: str, pool: str, name: str) -> Device | None:
        """The device, whether or not it takes something; None when it is not published."""
        return self._index((driver, pool)).get(name)

    def _index(self, key: PoolKey) -> Mapping[str, Device]:
        pool = self._inventory.pools.get(key)
        if pool is None:
            self._indexes.pop(key, None)
            return {}
        known = self._indexes.get(key)
        # A pool is immutable: the same object has the same devices.
        if known is not None and known[0] is pool:
            return known[1]
        newest_last = sorted(pool.slices, key=lambda each: each.spec.pool.generation)
        index = {device.name: device for each in newest_last for device in each.spec.devices}
        self._indexes[key] = (pool, index)
        return index
