from __future__ import annotations

from drakit.allocator.inventory.counts import count_devices, offers
from drakit.api import DeviceRequestAllocationResult
from tests.builders.objects import class_of, device, held, inventory_of, slice_of

EVEN = 'device.attributes["gpu.example.com"].number % 2 == 0'


def test_devices_of_the_class_are_counted_and_those_in_use() -> None:
    devices = slice_of(*(device(f"d{number}", attributes={"number": number}) for number in range(5)))
    inventory = inventory_of(devices, used=[held("a", "d0"), held("b", "d1")])
    assert count_devices(inventory, class_of("even", EVEN), "node-a") == (3, 1)
    assert count_devices(inventory, class_of("any"), "node-a") == (5, 2)


def test_another_node_has_none_of_them() -> None:
    assert count_devices(inventory_of(slice_of(device("d0"))), class_of("any"), "node-b") == (0, 0)


def test_devices_of_all_nodes_count_for_each() -> None:
    inventory = inventory_of(
        slice_of(device("d0"), device("d1"), allNodes=True), slice_of(device("e0"), name="s", pool="q")
    )
    assert count_devices(inventory, class_of("any"), "node-a") == (3, 0)
    assert count_devices(inventory, class_of("any"), "node-b") == (2, 0)


def test_a_device_that_somebody_has_a_share_of_is_in_use() -> None:
    shared = slice_of(device("d0", allowMultipleAllocations=True), device("d1"))
    assert count_devices(inventory_of(shared, used=[held("a", "d0", shareID="s")]), class_of("any"), "node-a") == (2, 1)


def test_nothing_is_counted_where_a_selector_fails() -> None:
    inventory = inventory_of(slice_of(device("d0"), device("d1")))
    assert count_devices(inventory, class_of("broken", EVEN), "node-a") == (0, 0)


def result(name: str) -> DeviceRequestAllocationResult:
    return DeviceRequestAllocationResult(request="r", driver="gpu.example.com", pool="pool", device=name)


def test_a_device_is_offered_where_its_class_selects_it_and_no_taint_keeps_it() -> None:
    taint = {"key": "k", "effect": "NoSchedule"}
    devices = slice_of(
        device("d0", attributes={"number": 0}),
        device("d1", attributes={"number": 1}),
        device("d2", attributes={"number": 2}, taints=[taint]),
    )
    inventory, even = inventory_of(devices), class_of("even", EVEN)
    assert [offers(inventory, even, "node-a", result(f"d{number}")) for number in range(4)] == [
        True,
        False,
        False,
        False,
    ]
    assert not offers(inventory, even, "node-b", result("d0"))
    assert offers(inventory_of(devices, used=[held("a", "d0")]), even, "node-a", result("d0"))  # in use or not
