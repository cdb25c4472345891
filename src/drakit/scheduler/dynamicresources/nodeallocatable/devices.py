"""The devices that take something of their node, by name.

In:  slices as they come and go, and the inventory that has them all.
Out: whether there is any such device at all (most clusters have none, and pay nothing), and a device by driver, pool
     and name, as its pool's newest generation tells it.
"""

from __future__ import annotations

from collections.abc import Mapping

from drakit.allocator import Inventory, Pool, PoolKey
from drakit.api import Device, ResourceSlice


class MappedDevices:
    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._slices: dict[str, PoolKey] = {}
        self._pools: dict[PoolKey, set[str]] = {}
        self._indexes: dict[PoolKey, tuple[Pool, Mapping[str, Device]]] = {}

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

    def seen_by(self, node: str) -> bool:
        """Whether any pool that the node sees has such devices."""
        return bool(self._pools) and any(view.key in self._pools for view in self._inventory.views(node))

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
