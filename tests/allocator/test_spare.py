"""How many devices an allocation leaves free."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from drakit.allocator import Allocated, Allocator, Inventory
from tests.allocator.picks import run
from tests.builders.objects import (
    ALL_ON,
    claim_of,
    class_of,
    device,
    every,
    exactly,
    first_of,
    held,
    inventory_of,
    slice_of,
    sub,
)

EVEN = 'device.attributes["gpu.example.com"].number % 2 == 0'
BROKEN = {"key": "broken", "effect": "NoSchedule"}
COUNTERS = {"name": "card", "counters": {"memory": {"value": "8"}}}


def numbered(count: int, **fields: object) -> list[dict[str, object]]:
    return [device(f"d{number}", attributes={"number": number}, **fields) for number in range(count)]


def left(inventory: Inventory, *requests: dict[str, object], nodes: tuple[str, ...] = ("node-a",)) -> list[int]:
    return Allocator(inventory, [claim_of(*requests)], snapshot=False).left(nodes)


def partition(name: str, takes: int) -> dict[str, object]:
    draws = [{"counterSet": "card", "counters": {"memory": {"value": str(takes)}}}]
    return device(name, consumesCounters=draws)


def test_what_the_claim_takes_and_what_others_have_is_not_left() -> None:
    assert left(inventory_of(slice_of(*numbered(8)), used=[held("a", "d0", "d7")]), exactly(count=2)) == [4]


def test_only_devices_that_the_claim_could_use_count() -> None:
    assert left(inventory_of(slice_of(*numbered(8))), exactly("req", 1, EVEN)) == [3]
    assert left(inventory_of(slice_of(*numbered(4), device("t", taints=[BROKEN]))), exactly()) == [3]


def test_any_alternative_counts() -> None:
    choice = first_of("req", sub("big", 6, EVEN), sub("small", 1))
    assert left(inventory_of(slice_of(*numbered(8))), choice) == [7]


def test_admin_access_takes_nothing_and_counts_nothing() -> None:
    assert left(inventory_of(slice_of(*numbered(4))), exactly(adminAccess=True)) == [0]
    assert left(inventory_of(slice_of(*numbered(4))), exactly("a", adminAccess=True), exactly("b")) == [3]


def test_a_device_of_which_somebody_has_a_share_is_not_free_and_the_next_share_costs_nothing() -> None:
    shared = slice_of(*numbered(4, allowMultipleAllocations=True))
    assert left(inventory_of(shared), exactly()) == [3]
    assert left(inventory_of(shared, used=[held("a", "d0", shareID="s")]), exactly()) == [3]


def test_partitions_whose_card_is_used_up_are_not_free() -> None:
    parts = slice_of(partition("whole", 8), *(partition(f"half{each}", 4) for each in range(2)), name="s", count=2)
    card = slice_of(name="c", count=2, sharedCounters=[COUNTERS])
    half = exactly("req", 1, 'device.driver != ""')
    inventory = inventory_of(parts, card, used=[held("a", "half0")])
    assert left(inventory, half) == [0]  # the other half goes, and with it the card
    assert left(inventory_of(parts, card), half) == [0]  # the whole card goes


def test_a_node_where_the_claim_does_not_fit_has_none_left() -> None:
    assert left(inventory_of(slice_of(*numbered(2))), exactly(count=3), nodes=("node-a", "node-b")) == [0, 0]


USES = st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 3), st.booleans()), max_size=12)


@settings(max_examples=100, deadline=None)
@given(USES)
def test_what_is_remembered_is_what_counting_anew_gives(uses: list[tuple[str, int, bool]]) -> None:
    nodes = ("a", "b", "c")
    inventory = Inventory(ALL_ON)
    inventory.put_class(class_of())
    for name in nodes:
        inventory.put_slice(slice_of(*numbered(4), name=name, pool=name, nodeName=name))
    for name, number, begins in uses:
        user = held(f"{name}{number}", f"d{number}", pool=name)
        inventory.put_claim(user) if begins else inventory.remove_claim(user.metadata.uid)
        for request in (exactly(), exactly(count=2), every()):
            counted = [_count(inventory, name, request) for name in nodes]
            assert left(inventory, request, nodes=nodes) == counted


def _count(inventory: Inventory, name: str, request: dict[str, object]) -> int:
    """By carrying it out."""
    fork = inventory.fork()
    outcome = run(fork, claim_of(request), node=name)
    if not isinstance(outcome, Allocated):
        return 0
    fork.begin_allocation(claim_of(), outcome.allocations[0])
    return 4 - len(fork.ledger.use(("gpu.example.com", name)).dedicated)
