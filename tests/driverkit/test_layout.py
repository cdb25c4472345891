"""Which device stands in which slice, and what is written when something changes. Nothing here needs a server."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakit.api import (
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCounterConsumption,
    DeviceTaint,
    ObjectMeta,
    OwnerReference,
    Quantity,
    ResourceSlice,
)
from drakit.driverkit import DevicePool
from drakit.driverkit.slices.layout import cut
from drakit.driverkit.slices.plan import Publication, SlicePlan, plan_pool

OWNER = OwnerReference(api_version="v1", kind="Node", name="node-1", uid="n-1", controller=True)
WHO = Publication(driver="leds.example.com", node_name="node-1", owner=OWNER)
TAINT = DeviceTaint(key="sick", effect="NoExecute")


def devices(count: int, *, start: int = 0) -> tuple[Device, ...]:
    return tuple(Device(name=f"d-{number:04d}") for number in range(start, start + count))


def sizes(pool: DevicePool, before: Sequence[Sequence[str]] = ()) -> list[int]:
    return [len(each.devices) for each in cut(pool, before)]


def plan(pool: DevicePool, current: Sequence[ResourceSlice] = ()) -> SlicePlan:
    return plan_pool(pool, current, WHO, same=lambda wanted, found: wanted == found.spec)


def carried_out(current: Sequence[ResourceSlice], plan: SlicePlan) -> list[ResourceSlice]:
    """What the server has then."""
    gone = {each.metadata.name for each in plan.delete}
    slices = {each.metadata.name: each for each in current if each.metadata.name not in gone}
    slices |= {each.metadata.name: each for each in plan.update}
    for number, each in enumerate(plan.create):
        name = f"{each.metadata.generate_name}{len(slices):03d}{number}"
        metadata = msgspec.structs.replace(each.metadata, name=name, uid=name, resource_version="1")
        slices[name] = msgspec.structs.replace(each, metadata=metadata)
    return [slices[name] for name in sorted(slices)]


def published(pool: DevicePool) -> list[ResourceSlice]:
    return carried_out([], plan(pool))


def pool_of(*found: Device) -> DevicePool:
    return DevicePool(name="node-1", devices=found)


def names_in(slices: Sequence[ResourceSlice]) -> list[str]:
    return [device.name for each in slices for device in each.spec.devices]


@pytest.mark.parametrize(
    ("count", "expected"), [(0, [0]), (1, [1]), (128, [128]), (129, [128, 1]), (300, [128, 128, 44])]
)
def test_plain_devices_fill_slices_of_128(count: int, expected: list[int]) -> None:
    assert sizes(pool_of(*devices(count))) == expected


@pytest.mark.parametrize(
    "advanced",
    [
        Device(name="x", taints=(TAINT,)),
        Device(name="x", attributes={"a": DeviceAttribute(ints=(1, 2))}),
        Device(name="x", consumes_counters=(DeviceCounterConsumption(counter_set="s"),)),
    ],
)
def test_a_slice_with_taints_counters_or_lists_has_64(advanced: Device) -> None:
    assert sizes(pool_of(advanced, *devices(100))) == [64, 37]
    assert sizes(pool_of(*devices(100), advanced)) == [100, 1]


def test_counter_sets_have_slices_of_their_own() -> None:
    counters = tuple(
        CounterSet(name=f"s-{number}", counters={"c": Counter(value=Quantity.parse("1"))}) for number in range(9)
    )
    pool = DevicePool(name="node-1", shared_counters=counters, devices=devices(3))
    assert [(len(each.shared_counters), len(each.devices)) for each in cut(pool)] == [(8, 0), (1, 0), (0, 3)]


def test_the_first_slice_looks_as_a_kubelet_plugin_in_go_makes_it() -> None:
    (made,) = plan(pool_of(*devices(4))).create
    assert made.metadata == ObjectMeta(generate_name="00000-leds.example.com-node-1-", owner_references=(OWNER,))
    assert (made.spec.pool.name, made.spec.pool.generation, made.spec.pool.resource_slice_count) == ("node-1", 1, 1)
    assert made.spec.node_name == "node-1"


def test_what_is_there_already_is_not_written() -> None:
    pool = pool_of(*devices(300))
    assert not plan(pool, published(pool))


def test_one_changed_device_rewrites_one_slice() -> None:
    before = devices(300)
    changed = msgspec.structs.replace(before[200], attributes={"a": DeviceAttribute(int_=1)})
    todo = plan(pool_of(*before[:200], changed, *before[201:]), published(pool_of(*before)))
    assert (len(todo.create), len(todo.update), len(todo.delete)) == (0, 1, 0)
    assert todo.update[0].spec.pool.generation == 1
    assert todo.update[0].metadata.name.startswith("00001-")


def test_a_device_that_goes_or_comes_touches_its_slice_only() -> None:
    current = published(pool_of(*devices(300)))
    gone = plan(pool_of(*devices(300)[1:]), current)
    assert [each.metadata.name[:5] for each in gone.update] == ["00000"]
    assert (gone.create, gone.delete) == ((), ())
    new = Device(name="new")
    back = plan(pool_of(*devices(300)[1:50], new, *devices(300)[50:]), carried_out(current, gone))
    assert [each.metadata.name[:5] for each in back.update] == ["00000"]


def test_a_new_slice_gives_all_a_new_generation() -> None:
    current = published(pool_of(*devices(128)))
    todo = plan(pool_of(*devices(129)), current)
    assert (len(todo.create), len(todo.update)) == (1, 1)
    after = carried_out(current, todo)
    assert {(each.spec.pool.generation, each.spec.pool.resource_slice_count) for each in after} == {(2, 2)}
    assert names_in(after) == [device.name for device in devices(129)]


def test_slices_that_are_not_needed_any_more_are_deleted() -> None:
    current = published(pool_of(*devices(300)))
    todo = plan(pool_of(*devices(10)), current)
    assert (len(todo.update), len(todo.delete)) == (1, 2)
    assert todo.update[0].spec.pool.generation == 2


def test_a_device_that_moves_gives_a_new_generation() -> None:
    before = devices(200)
    current = published(pool_of(*before))
    todo = plan(pool_of(*reversed(before)), current)
    assert {each.spec.pool.generation for each in todo.update} == {2}
    assert names_in(carried_out(current, todo)) == [device.name for device in reversed(before)]


def test_a_taint_keeps_the_time_since_when() -> None:
    sick = msgspec.structs.replace(devices(1)[0], taints=(TAINT,))
    timed = msgspec.structs.replace(TAINT, time_added="2026-01-01T00:00:00Z")
    (current,) = published(pool_of(msgspec.structs.replace(sick, taints=(timed,))))
    assert not plan(pool_of(sick), [current])
    (changed,) = plan(
        pool_of(msgspec.structs.replace(sick, attributes={"a": DeviceAttribute(int_=1)})), [current]
    ).update
    assert changed.spec.devices[0].taints == (timed,)


def test_foreign_slices_of_the_pool_are_deleted() -> None:
    (ours,) = published(pool_of(*devices(2)))
    foreign = msgspec.structs.replace(ours, metadata=msgspec.structs.replace(ours.metadata, name="foreign"))
    twin = msgspec.structs.replace(ours, metadata=msgspec.structs.replace(ours.metadata, name=ours.metadata.name + "x"))
    todo = plan(pool_of(*devices(2)), [twin, foreign, ours])
    assert {each.metadata.name for each in todo.delete} == {"foreign", twin.metadata.name}
    assert (todo.create, todo.update) == ((), ())


def test_a_generation_that_somebody_raised_stays() -> None:
    (ours,) = published(pool_of(*devices(2)))
    spec = msgspec.structs.replace(ours.spec, pool=msgspec.structs.replace(ours.spec.pool, generation=9))
    raised = msgspec.structs.replace(ours, spec=spec)
    assert not plan(pool_of(*devices(2)), [raised])
    (changed,) = plan(pool_of(*devices(3)), [raised]).update
    assert changed.spec.pool.generation == 9


def test_the_owner_comes_back_and_labels_stay() -> None:
    (ours,) = published(pool_of(*devices(2)))
    edited = msgspec.structs.replace(ours.metadata, owner_references=(), labels={"a": "b"})
    (changed,) = plan(pool_of(*devices(2)), [msgspec.structs.replace(ours, metadata=edited)]).update
    assert (changed.metadata.owner_references, changed.metadata.labels) == ((OWNER,), {"a": "b"})


@given(
    st.lists(st.lists(st.integers(0, 400), unique=True, max_size=300), min_size=1, max_size=4),
    st.sets(st.integers(0, 400)),
)
def test_whatever_changes_the_slices_are_whole_in_order_and_within_limits(
    words: list[list[int]], sick: set[int]
) -> None:
    current: list[ResourceSlice] = []
    for numbers in words:
        wanted = tuple(
            Device(name=f"d-{number}", taints=(TAINT,) if number in sick and number % 7 == 0 else ())
            for number in numbers
        )
        current = carried_out(current, plan(pool_of(*wanted), current))
        assert names_in(current) == [device.name for device in wanted]
        assert {each.spec.pool.resource_slice_count for each in current} == {len(current)}
        assert len({each.spec.pool.generation for each in current}) == 1
        for each in current:
            assert len(each.spec.devices) <= (64 if any(device.taints for device in each.spec.devices) else 128)
        assert not plan(pool_of(*wanted), current)
