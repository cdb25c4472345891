"""What a driver publishes: pools of devices, as typed objects or as YAML.

In:  whatever `Driver.devices` returns.
Out: named pools. How they are cut into slices is the business of `slices`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from drakit.api import CounterSet, Device, NodeSelector, from_plain, parse_documents
from drakit.base.errors import UsageError
from drakit.base.structs import Model


class DevicePool(Model, forbid_unknown_fields=True):
    """Devices that are published together.

    Without a name it is the pool of the node. Devices are on that node unless `node_selector` or `all_nodes` say that
    others can reach them too, or the devices say so one by one.
    """

    devices: tuple[Device, ...] = ()
    name: str = ""
    shared_counters: tuple[CounterSet, ...] = ()
    node_selector: NodeSelector | None = None
    all_nodes: bool = False

    @property
    def per_device(self) -> bool:
        """Whether each device says itself where it can be reached."""
        return any(each.node_name or each.node_selector or each.all_nodes for each in self.devices)

    @property
    def is_local(self) -> bool:
        """Whether the pool is the node's own."""
        return not (self.node_selector or self.all_nodes or self.per_device)


Published = Sequence[Device] | Sequence[DevicePool] | str
"""Devices of the node's pool; or pools; or either as YAML: a list of devices, or a map with `pools`."""


def read_pools(published: Published, node_name: str) -> tuple[DevicePool, ...]:
    """Pools with their names. Raise UsageError for what makes no sense before any rule of the server is asked."""
    if isinstance(published, str):
        published = pools_from_yaml(published)
    listed = list(published)
    pools = [each for each in listed if isinstance(each, DevicePool)]
    if len(pools) < len(listed):
        if pools:
            raise UsageError("devices(): return devices or pools, not both")
        pools = [DevicePool(devices=tuple(each for each in listed if isinstance(each, Device)))]
    return _named(pools, node_name)


def pools_from_yaml(text: str, *, source: str = "devices()") -> list[DevicePool]:
    """Read a list of devices, or a map with a list of `pools`. Raise DecodeError with the place of what is wrong."""
    pools: list[DevicePool] = []
    for document in parse_documents(text, syntax="yaml", source=source):
        if isinstance(document, Mapping) and "pools" in document:
            pools.extend(from_plain(DevicePool, each) for each in document["pools"])
        elif isinstance(document, Sequence) and not isinstance(document, str):
            pools.append(from_plain(DevicePool, {"devices": document}))
        elif document is not None:
            raise UsageError(f"{source}: expected a list of devices, or a map with `pools`, got {_brief(document)}")
    return pools


def devices_by_key(pools: Iterable[DevicePool]) -> dict[tuple[str, str], Device]:
    """Every device by pool and name."""
    return {(pool.name, device.name): device for pool in pools for device in pool.devices}


def _named(pools: Iterable[DevicePool], node_name: str) -> tuple[DevicePool, ...]:
    named = tuple(each if each.name else _replace_name(each, node_name) for each in pools)
    names = [each.name for each in named]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"devices(): pool {name!r} is there twice")
    return named


def _replace_name(pool: DevicePool, name: str) -> DevicePool:
    return DevicePool(
        name=name,
        devices=pool.devices,
        shared_counters=pool.shared_counters,
        node_selector=pool.node_selector,
        all_nodes=pool.all_nodes,
    )


def _brief(value: Any) -> str:
    return type(value).__name__
