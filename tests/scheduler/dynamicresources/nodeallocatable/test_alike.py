"""Nodes that are alike are weighed once: the verdicts are those of weighing every node."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from drakit.allocator import Allocator
from drakit.scheduler.dynamicresources.nodeallocatable.charges import refuse_overcharged
from drakit.scheduler.dynamicresources.state.needs import PodNeeds, Variant
from drakit.scheduler.framework import PluginStatus
from tests.builders.objects import claim_of, device, exactly, held, slice_of
from tests.scheduler.dynamicresources.nodeallocatable.objects import accounting, charging_pod, container, node_info

Plain = dict[str, Any]
ASKED = charging_pod(container("c", "claim", cpu="500m"), claims=("claim",))
mappings = st.sampled_from(
    [{}, {"cpu": {"allocationMultiplier": "1"}}, {"cpu": {"allocationMultiplier": "3"}}, {"cpu": {"capacityKey": "x"}}]
)
shapes = st.builds(
    lambda mapping, size: {"capacity": {"x": {"value": size}}, "nodeAllocatableResourceMappings": mapping},
    mappings,
    st.sampled_from(["1", "2"]),
)
machines = st.lists(shapes, min_size=1, max_size=3)
clusters = st.lists(machines, min_size=1, max_size=2).flatmap(
    lambda kinds: st.lists(
        st.tuples(st.sampled_from(kinds), st.integers(0, 2), st.integers(1, 6)), min_size=2, max_size=6
    )
)


@settings(max_examples=200, deadline=None)
@given(clusters, st.integers(1, 2))
def test_nodes_alike_get_the_verdict_that_each_would_get_alone(cluster: list[Any], count: int) -> None:
    books = accounting(*(_published(at, shapes) for at, (shapes, _, _) in enumerate(cluster)))
    inventory = books.devices._inventory
    nodes = [node_info(f"n{at}", cpu=str(cpus)) for at, (_, _, cpus) in enumerate(cluster)]
    for at, (_, used, _) in enumerate(cluster):
        inventory.put_node(nodes[at].node)
        inventory.put_claim(held(f"other{at}", *(f"d{each}" for each in range(used)), pool=f"n{at}"))
    wanted = claim_of(exactly("r", count), name="claim")
    allocator = Allocator(inventory, [wanted])
    fitting = [each for each in nodes if each.name in {*allocator.suitable([each.name for each in nodes])}]
    together, apart = _refused(books, wanted, allocator, fitting), dict[str, PluginStatus]()
    for each in fitting:
        apart |= _refused(books, wanted, allocator, [each])
    assert together == apart


def _published(at: int, shapes: list[Plain]) -> Any:
    devices = [device(f"d{number}", **shape) for number, shape in enumerate(shapes)]
    return slice_of(*devices, name=f"n{at}", pool=f"n{at}", nodeName=f"n{at}")


def _refused(books: Any, wanted: Any, allocator: Allocator, nodes: list[Any]) -> dict[str, PluginStatus]:
    needs, refused = PodNeeds(), dict[str, PluginStatus]()
    needs.charge = books.attempt(ASKED, ()) if books.is_active else None
    refuse_overcharged(needs, Variant([wanted], [0], allocator), nodes, refused)
    return refused
