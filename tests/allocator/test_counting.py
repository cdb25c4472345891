from __future__ import annotations

from drakit.allocator.counting import count_devices
from tests.allocator.objects import class_of, cluster, device, held, slice_of

EVEN = 'device.attributes["gpu.example.com"].number % 2 == 0'


def test_devices_of_the_class_are_counted_and_those_in_use() -> None:
    devices = slice_of(*(device(f"d{number}", attributes={"number": number}) for number in range(5)))
    inventory = cluster(devices, used=[held("a", "d0"), held("b", "d1")])
    assert count_devices(inventory, class_of("even", EVEN), "node-a") == (3, 1)
    assert count_devices(inventory, class_of("any"), "node-a") == (5, 2)


def test_another_node_has_none_of_them() -> None:
    assert count_devices(cluster(slice_of(device("d0"))), class_of("any"), "node-b") == (0, 0)


def test_devices_of_all_nodes_count_for_each() -> None:
    inventory = cluster(slice_of(device("d0"), device("d1"), allNodes=True), slice_of(device("e0"), name="s", pool="q"))
    assert count_devices(inventory, class_of("any"), "node-a") == (3, 0)
    assert count_devices(inventory, class_of("any"), "node-b") == (2, 0)


def test_a_device_that_somebody_has_a_share_of_is_in_use() -> None:
    shared = slice_of(device("d0", allowMultipleAllocations=True), device("d1"))
    assert count_devices(cluster(shared, used=[held("a", "d0", shareID="s")]), class_of("any"), "node-a") == (2, 1)


def test_nothing_is_counted_where_a_selector_fails() -> None:
    inventory = cluster(slice_of(device("d0"), device("d1")))
    assert count_devices(inventory, class_of("broken", EVEN), "node-a") == (0, 0)
