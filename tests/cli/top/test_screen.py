"""What `drakit top` shows, as data: cards of nodes, pods that wait, events, filtered."""

from __future__ import annotations

import pytest

from drakit.base.gates import FeatureGates
from drakit.cli.commands.top import saved_feed
from drakit.cli.commands.top.screen import SEVERAL, CardState, ScreenFilter, screen_content
from drakit.explain import ClusterObjects
from tests.cli.top.clusters import DEMO, event, node_with, waiting

EVERYTHING = ScreenFilter()


def test_partitions_of_a_card_are_one_cell() -> None:
    """The demo cluster has cards with partitions, of which one is partly taken, and a tainted card."""
    content = screen_content(saved_feed([DEMO]).objects(), [], EVERYTHING)
    states = {row.node: [card.state for card in row.cards] for row in content.rows}
    assert states.keys() == {SEVERAL, "node-a", "node-b"}
    assert states["node-a"].count(CardState.TAINTED) == 1
    assert states["node-b"].count(CardState.PARTLY) == 1
    assert content.totals.cards == sum(map(len, states.values()))


def test_the_first_pods_that_wait_are_explained_and_the_others_have_what_the_scheduler_told() -> None:
    pods = [waiting(f"p{number}", "0/3 nodes are available") for number in range(10)]
    content = screen_content(ClusterObjects([*pods, waiting("placed", "", node="n1")]), [], EVERYTHING)
    told = {each.name: each.reason for each in content.waiting}
    assert "placed" not in told
    assert told["p0"] == "fits nowhere: the cluster has no node."
    assert told["p9"] == "0/3 nodes are available"


def test_events_are_shown_with_the_newest_first() -> None:
    happened = [event("Scheduled", "2026-01-01T00:00:01Z"), event("Started", "2026-01-01T00:00:02Z")]
    content = screen_content(ClusterObjects([]), happened, EVERYTHING)
    assert [(line.time, line.reason) for line in content.events] == [
        ("2026-01-01 00:00:02", "Started"),
        ("2026-01-01 00:00:01", "Scheduled"),
    ]


@pytest.mark.parametrize(
    ("wanted", "nodes"),
    [
        (ScreenFilter(text="N2"), ["n2"]),
        (ScreenFilter(driver="b.example.com"), ["n2"]),
        (ScreenFilter(driver="nobody"), []),
        (ScreenFilter(free_only=True), ["n1", "n2"]),
    ],
)
def test_a_filter_leaves_what_it_finds(wanted: ScreenFilter, nodes: list[str]) -> None:
    objects = [*node_with("n1", "a.example.com", 2), *node_with("n2", "b.example.com", 1)]
    content = screen_content(ClusterObjects(objects, gates=FeatureGates.all_on()), [], wanted)
    assert [row.node for row in content.rows] == nodes
    assert content.drivers == ("a.example.com", "b.example.com")
