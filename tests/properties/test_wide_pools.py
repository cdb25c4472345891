"""Pools that many nodes reach: what is kept from pod to pod gives the answer that a new inventory gives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drakit.allocator import Allocated, Allocator, Inventory, allocate
from drakit.allocator.inventory.pools import NodeLabels, Pool, PoolView
from drakit.allocator.search.occupancy import Occupancy
from drakit.api import AllocationResult, DeviceClass, Node, ResourceClaim, ResourceSlice, from_plain
from drakit.base.gates import FeatureGates

Plain = dict[str, Any]
DRIVER, POOLS = "gpu.example.com", 12
NODES = {"node-a": {"zone": "1"}, "node-b": {"zone": "1"}, "node-c": {"zone": "2"}}
ZONE = {"key": "zone", "operator": "In", "values": ["1"]}
PLACES: list[Plain] = [
    {"allNodes": True},
    {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [ZONE]}]}},
    {"nodeName": "node-b"},
    {"perDeviceNodeSelection": True},
]
ASKED: list[Plain] = [
    {"count": 1},
    {"count": 2},
    {"count": 1, "capacity": {"requests": {"memory": "3"}}},
    {"count": 1, "selectors": [{"cel": {"expression": "device.allowMultipleAllocations == true"}}]},
]


def pool(number: int, place: Plain, memory: str = "8") -> Plain:
    """A shared device, and two partitions of one card of which only one can be had."""
    parts = [{"name": "shared", "allowMultipleAllocations": True, "capacity": {"memory": {"value": memory}}}]
    use = [{"counterSet": "card", "counters": {"slots": {"value": "2"}}}]
    parts += [{"name": name, "consumesCounters": use} for name in ("left", "right")]
    for each in parts:
        each["attributes"] = {"card": {"int": number}}
        if "perDeviceNodeSelection" in place:
            each |= {"allNodes": True} if each["name"] == "left" else {"nodeName": "node-c"}
    about = {"name": f"pool-{number:02}", "generation": 1, "resourceSliceCount": 2}
    return {
        "devices": {"driver": DRIVER, "pool": about, "devices": parts, **place},
        "counters": {
            "driver": DRIVER,
            "pool": about,
            "sharedCounters": [{"name": "card", "counters": {"slots": {"value": "3"}}}],
            **({"allNodes": True} if "perDeviceNodeSelection" in place else place),
        },
    }


def drawn_claim(number: int, asked: Plain, *, together: bool) -> ResourceClaim:
    request = {"name": "r", "exactly": {"deviceClassName": "any", "allocationMode": "ExactCount", **asked}}
    devices: Plain = {"requests": [request]}
    if together:
        devices["constraints"] = [{"matchAttribute": f"{DRIVER}/card"}]
    about = {"name": f"c{number}", "namespace": "default", "uid": f"uid-{number}"}
    return from_plain(ResourceClaim, {"metadata": about, "spec": {"devices": devices}})


class World:
    """The same changes go to one inventory that lives on, and to lists from which a new one is built."""

    def __init__(self, places: list[Plain]) -> None:
        self.slices = {
            f"{number}-{part}": from_plain(ResourceSlice, {"metadata": {"name": f"{number}-{part}"}, "spec": spec})
            for number, place in enumerate(places)
            for part, spec in pool(number, place).items()
        }
        self.places = list(places)
        self.held: dict[str, tuple[ResourceClaim, AllocationResult]] = {}
        self.lasting = self.anew()

    def anew(self) -> Inventory:
        made = Inventory(FeatureGates.all_on())
        made.put(from_plain(DeviceClass, {"metadata": {"name": "any"}, "spec": {}}))
        for name, labels in NODES.items():
            made.put(from_plain(Node, {"metadata": {"name": name, "labels": labels}}))
        for each in self.slices.values():
            made.put(each)
        for wanted, result in self.held.values():
            made.begin_allocation(wanted, result)
        return made

    def take(self, node: str, wanted: ResourceClaim) -> None:
        """Both inventories answer alike, on every node; on one the claim is then allocated."""
        allocator, anew = Allocator(self.lasting, [wanted], snapshot=False), self.anew()
        for each in NODES:
            assert told(allocator, each) == told(Allocator(anew, [wanted]), each)
            assert list(allocator.left([each])) == list(Allocator(anew, [wanted]).left([each]))
        found = allocate(anew, node, [wanted])
        if isinstance(found, Allocated):
            self.held[wanted.metadata.uid] = (wanted, found.allocations[0])
            self.lasting.begin_allocation(wanted, found.allocations[0])

    def release(self, number: int) -> None:
        if self.held:
            uid = list(self.held)[number % len(self.held)]
            del self.held[uid]
            self.lasting.end_allocation(uid)

    def move(self, number: int, place: Plain, memory: str = "8") -> None:
        self.places[number] = place
        for part, spec in pool(number, place, memory).items():
            name = f"{number}-{part}"
            self.slices[name] = from_plain(ResourceSlice, {"metadata": {"name": name}, "spec": spec})
            self.lasting.put(self.slices[name])


def told(allocator: Allocator, node: str) -> object:
    found = allocator.allocate(node, new_uid=lambda: "share")
    return found.allocations if isinstance(found, Allocated) else type(found).__name__


TAKE = st.tuples(st.just("take"), st.sampled_from(sorted(NODES)), st.integers(0, len(ASKED) - 1), st.booleans())
RELEASE = st.tuples(st.just("release"), st.integers(0, 30))
MOVE = st.tuples(st.just("move"), st.integers(0, POOLS - 1), st.sampled_from(PLACES))
RESIZE = st.tuples(st.just("resize"), st.integers(0, POOLS - 1), st.sampled_from(["2", "4"]))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from(PLACES), min_size=POOLS, max_size=POOLS),
    st.lists(st.one_of(TAKE, TAKE, TAKE, RELEASE, MOVE, RESIZE), min_size=5, max_size=25),
)
def test_an_inventory_that_lives_on_answers_as_a_new_one(places: list[Plain], steps: list[Any]) -> None:
    world = World(places)
    for number, step in enumerate(steps):
        match step:
            case ("take", node, asked, together):
                world.take(node, drawn_claim(number, ASKED[asked], together=together))
            case ("release", which):
                world.release(which)
            case ("move", which, place):
                world.move(which, place)
            case ("resize", which, memory):
                world.move(which, world.places[which], memory)


def test_only_pools_that_changed_are_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world, looked_at, view = World([{"allNodes": True}] * POOLS), list[str](), Pool.view
    before = world.lasting.views("node-a")

    def counted(each: Pool, node: NodeLabels) -> PoolView | None:
        looked_at.append(each.key[1])
        return view(each, node)

    monkeypatch.setattr(Pool, "view", counted)
    world.move(3, {"allNodes": True}, "4")
    world.move(5, {"allNodes": True}, "2")
    after = world.lasting.views("node-a")
    assert sorted(looked_at) == ["pool-03", "pool-05"]
    assert [at for at, (old, new) in enumerate(zip(before, after, strict=True)) if old is not new] == [3, 5]


def test_nodes_that_selectors_cannot_tell_apart_share_one_state() -> None:
    world = World([{"allNodes": True}] * 6 + [PLACES[1]] * 6)
    one, other, third = (world.lasting.state(node) for node in NODES)
    assert one is other
    assert [sum(bool(view.devices) for view in each.views) for each in (one, third)] == [12, 6]


def test_an_occupancy_is_taken_over_but_for_the_pools_that_changed() -> None:
    world = World([{"allNodes": True}] * POOLS)
    wanted = drawn_claim(0, ASKED[1], together=True)
    before = world.lasting.state("node-a")
    allocator = Allocator(world.lasting, [wanted], snapshot=False)
    layout = allocator._cache.solver(before.views).layout
    first = Occupancy(layout, before.usages)
    assert first.after(before.usages) is first
    world.take("node-a", wanted)
    usages = world.lasting.state("node-a").usages
    assert sum(old is not new for old, new in zip(before.usages, usages, strict=True)) == 1
    again, fresh = first.after(usages), Occupancy(layout, usages)
    for name in Occupancy.__slots__:
        assert getattr(again, name) == getattr(fresh, name), name
    assert again.held
