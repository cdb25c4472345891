"""What is known of nodes is forgotten when, and only when, it may have changed."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from drakit.allocator import Allocator, Inventory, SearchResult
from tests.builders.objects import (
    ALL_ON,
    GPU,
    claim_of,
    class_of,
    device,
    every,
    exactly,
    held,
    node_of,
    slice_of,
    taint_rule,
)

NODES = ["node-a", "node-b", "node-c"]
ASKED = [claim_of(exactly()), claim_of(exactly(count=2)), claim_of(every())]
Change = Callable[[Inventory], None]


def own(number: int, generation: int, count: int = 1) -> Change:
    devices = [device(f"d{each}") for each in range(2)]
    name = NODES[number]
    made = slice_of(*devices, name=f"s-{name}", pool=f"p-{name}", nodeName=name, generation=generation, count=count)
    return lambda inventory: inventory.put_slice(made)


def change(kind: str, number: int, device_number: int) -> Change:
    pool, name = f"p-{NODES[number]}", f"c{number}{device_number}"
    user = held(name, f"d{device_number}", pool=pool)
    wide = slice_of(device("w"), name="wide", pool="wide", nodeSelector=_labelled())
    allocation = user.status.allocation
    assert allocation is not None
    changes: dict[str, Change] = {
        "use": lambda inventory: inventory.put_claim(user),
        "free": lambda inventory: inventory.remove_claim(user.metadata.uid),
        "begin": lambda inventory: inventory.begin_allocation(claim_of(name=name), allocation),
        "end": lambda inventory: inventory.end_allocation(user.metadata.uid),
        "use wide": lambda inventory: inventory.put_claim(held("w", "w", pool="wide")),
        "free wide": lambda inventory: inventory.remove_claim("uid-w"),
        "publish": own(number, device_number + 1),
        "publish half": own(number, device_number + 1, count=2),
        "withdraw": lambda inventory: inventory.remove_slice(f"s-{NODES[number]}"),
        "publish wide": lambda inventory: inventory.put_slice(wide),
        "withdraw wide": lambda inventory: inventory.remove_slice("wide"),
        "label": lambda inventory: inventory.put_node(node_of(NODES[number], zone="x")),
        "unlabel": lambda inventory: inventory.put_node(node_of(NODES[number])),
        "taint": lambda inventory: inventory.put_rule(taint_rule("r", {"pool": pool})),
        "untaint": lambda inventory: inventory.remove_rule("r"),
    }
    return changes[kind]


KINDS = [
    "use", "free", "begin", "end", "use wide", "free wide", "publish", "publish half", "withdraw", "publish wide",
    "withdraw wide", "label", "unlabel", "taint", "untaint",
]  # fmt: skip
STEPS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 2), st.integers(0, 1)), max_size=15)


def _labelled() -> dict[str, object]:
    expression = {"key": "zone", "operator": "In", "values": ["x"]}
    return {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_an_inventory_that_changes_refuses_what_a_new_one_refuses(steps: list[tuple[str, int, int]]) -> None:
    inventory = Inventory(ALL_ON)
    inventory.put_class(class_of())
    for number in range(3):
        own(number, 1)(inventory)
    for kind, number, device_number in steps:
        change(kind, number, device_number)(inventory)
        for asked in ASKED:
            refused = Allocator(inventory, [asked], snapshot=False).refused(NODES)
            known = {NODES[each.position]: each.answer.result for each in refused}
            answers = {each: Allocator(_anew(inventory), [asked]).answer(each).result for each in NODES}
            assert [each.result for each in Allocator(inventory, [asked]).answers(NODES)] == list(answers.values())
            assert known == {name: result for name, result in answers.items() if result is not SearchResult.FOUND}


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_every_node_whose_state_changes_is_told(steps: list[tuple[str, int, int]]) -> None:
    inventory = Inventory(ALL_ON)
    for number in range(3):
        own(number, 1)(inventory)
    for kind, number, device_number in steps:
        before, told = {each: inventory.state(each) for each in NODES}, inventory.changed_nodes
        read = len(told)
        change(kind, number, device_number)(inventory)
        changed = [each for each in NODES if inventory.state(each) is not before[each]]
        assert inventory.changed_nodes is not told or set(changed) <= set(told[read:])


def test_a_fork_tells_of_its_changes_apart() -> None:
    inventory = Inventory(ALL_ON)
    own(0, 1)(inventory)
    told, fork = list(inventory.changed_nodes), inventory.fork()
    fork.put_claim(held("c", "d0", pool="p-node-a"))
    assert inventory.changed_nodes == told
    assert fork.changed_nodes == ["node-a"]


def _anew(inventory: Inventory) -> Inventory:
    fork = inventory.fork()
    fork.remembered = {}
    for each in NODES:
        fork._forget(each)
    return fork


def test_a_plain_refusal_is_one_without_trouble_in_a_pool() -> None:
    inventory = Inventory()
    inventory.put_class(class_of())
    own(0, 1)(inventory)
    own(1, 1, count=2)(inventory)
    asked = claim_of(exactly(count=3))
    refused = Allocator(inventory, [asked], snapshot=False).refused(NODES)
    assert [(each.position, each.plain) for each in refused] == [(0, True), (1, False), (2, True)]


def test_a_node_keeps_its_state_as_long_as_nothing_about_its_devices_changes() -> None:
    inventory = Inventory(ALL_ON)
    inventory.put_class(class_of())
    for number in range(3):
        own(number, 1)(inventory)
    before = [inventory.state(each) for each in NODES]
    inventory.put_claim(held("c", "d0", pool="p-node-a"))
    after = [inventory.state(each) for each in NODES]
    assert [one is other for one, other in zip(before, after, strict=True)] == [False, True, True]


def test_nodes_that_see_the_same_pools_share_one_state_and_one_search() -> None:
    inventory = Inventory(ALL_ON)
    inventory.put_class(class_of())
    inventory.put_slice(slice_of(device("w"), name="wide", pool="wide", allNodes=True))
    assert len({id(inventory.state(each)) for each in NODES}) == 1
    allocator = Allocator(inventory, [claim_of(exactly())])
    assert len({id(allocator.answer(each)) for each in NODES}) == 1


def test_nodes_whose_views_a_fork_has_made_get_their_next_state_in_one_step() -> None:
    inventory = Inventory(ALL_ON)
    inventory.put_slice(slice_of(device("w"), name="wide", pool="wide", allNodes=True))
    fork = inventory.fork()
    for each in NODES:
        fork.views(each)
    for each in NODES:
        inventory.state(each)
    inventory.put_claim(held("w", "w", pool="wide"))
    assert not inventory.states
    first = inventory.state(NODES[0])
    assert [inventory.states.get(each) for each in NODES] == [first] * len(NODES)


def test_what_a_fork_changes_is_not_seen_by_its_origin_nor_the_other_way_round() -> None:
    inventory = Inventory(ALL_ON)
    inventory.put_class(class_of())
    for number in range(3):
        own(number, 1)(inventory)
    asked = [claim_of(exactly(count=2))]
    assert list(Allocator(inventory, asked).suitable(NODES)) == NODES
    fork = inventory.fork()
    fork.put_claim(held("c", "d0", pool="p-node-a"))
    inventory.put_claim(held("c", "d0", pool="p-node-b"))
    assert list(Allocator(fork, asked, snapshot=False).suitable(NODES)) == ["node-b", "node-c"]
    assert list(Allocator(inventory, asked, snapshot=False).suitable(NODES)) == ["node-a", "node-c"]


def test_pools_that_differ_in_attribute_values_alone_are_read_once() -> None:
    inventory = Inventory(ALL_ON)
    inventory.put_class(class_of())
    for number in range(3):
        devices = [device(each, attributes={f"{GPU}/card": number}) for each in ("one", "two")]
        inventory.put_slice(slice_of(*devices, name=f"wide-{number}", pool=f"wide-{number}", allNodes=True))
    together = claim_of(exactly(count=2), constraints=[{"matchAttribute": f"{GPU}/card"}])
    allocator = Allocator(inventory, [together], snapshot=False)
    pools = allocator._cache.layout(inventory.views(NODES[0])).pools
    assert len({pool.kind for pool in pools}) == 1
    assert [pool.rows[0][0] for pool in pools] == [frozenset({("int", number)}) for number in range(3)]
