"""The devices that take something of their node, as slices come and go."""

from __future__ import annotations

from drakit.api import ResourceSlice
from drakit.scheduler.dynamicresources.nodeallocatable.devices import NOTHING, MappedDevices
from tests.builders.objects import GPU, device, inventory_of, slice_of
from tests.scheduler.dynamicresources.nodeallocatable.objects import mapped, per_device


def test_there_are_none_where_no_slice_has_mappings() -> None:
    _, devices = mapped(slice_of(device("d")))
    assert not devices
    assert devices.kind_of("node-a") == NOTHING


def test_a_pool_counts_as_long_as_one_of_its_slices_has_mappings() -> None:
    both = [slice_of(device(name, **per_device(cpu="1")), name=name, count=2) for name in ("one", "two")]
    _, devices = mapped(*both)
    devices.remove_slice("one")
    assert devices.in_pool(GPU, "pool")
    devices.put_slice(slice_of(device("two"), name="two"))
    assert not devices
    devices.remove_slice("never-seen")


def test_a_node_sees_mappings_only_in_its_own_pools() -> None:
    _, devices = mapped(slice_of(device("d", **per_device(cpu="1")), nodeName="node-b"))
    assert devices.kind_of("node-b") != NOTHING
    assert devices.kind_of("node-a") == NOTHING


def test_nodes_are_of_one_kind_when_their_devices_take_the_same_one_by_one() -> None:
    def on(name: str, *cpus: str, size: str = "1") -> ResourceSlice:
        room = {"capacity": {"x": {"value": size}}}
        devices = [
            device(f"{name}{at}", attributes={"serial": f"{name}-{at}"}, **room, **per_device(cpu=each))
            for at, each in enumerate(cpus)
        ]
        return slice_of(*devices, name=name, pool=name, nodeName=name)

    inventory, devices = mapped(on("a", "1", "2"), on("b", "1", "2"), on("c", "2", "1"), on("d", "1", "2", size="2"))
    kinds = [devices.kind_of(name) for name in "abcd"]
    assert kinds[0] == kinds[1]
    assert len({*kinds, NOTHING}) == 4
    inventory.put_slice(on("a", "2", "1"))
    assert devices.kind_of("a") == kinds[2]
    inventory.remove_slice("a")
    assert devices.kind_of("a") == NOTHING


def test_a_device_is_found_by_driver_pool_and_name() -> None:
    mine = slice_of(device("d", **per_device(cpu="1")))
    other = slice_of(device("d", **per_device(cpu="9")), name="other", driver="other.example.com")
    _, devices = mapped(other, mine)
    found = devices.find(GPU, "pool", "d")
    assert found is mine.spec.devices[0]
    assert devices.find(GPU, "pool", "none") is None
    assert devices.find(GPU, "none", "d") is None


def test_the_newest_generation_tells_what_a_device_takes() -> None:
    inventory, devices = mapped(slice_of(device("d", **per_device(cpu="1")), name="z"))
    newer = slice_of(device("d", **per_device(cpu="2")), name="a", generation=2)
    inventory.put_slice(newer)
    devices.put_slice(newer)
    assert devices.find(GPU, "pool", "d") is newer.spec.devices[0]
    inventory.remove_slice("a")
    devices.remove_slice("a")
    found = devices.find(GPU, "pool", "d")
    assert found is not None
    assert str(found.node_allocatable_resource_mappings["cpu"].allocation_multiplier) == "1"


def test_devices_of_pools_without_mappings_are_found_too() -> None:
    plain = slice_of(device("d"))
    assert MappedDevices(inventory_of(plain)).find(GPU, "pool", "d") is plain.spec.devices[0]
