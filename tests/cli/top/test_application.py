"""The full-screen view, driven by keys: what is drawn, what filters leave, that it follows and that it ends."""

from __future__ import annotations

import pytest

pytest.importorskip("textual", reason="drakit top needs the extra `top`")

from textual.pilot import Pilot
from textual.widgets import DataTable, Input, Static

from drakit.base.gates import FeatureGates
from drakit.cli.commands.top.application import TopApplication
from drakit.cli.commands.top.feed import SavedFeed
from drakit.cli.commands.top.heatmap import HeatMap
from drakit.explain import ClusterObjects
from tests.builders.loop import on_loop
from tests.cli.top.clusters import event, node_with, waiting


def feed() -> SavedFeed:
    objects = [
        *node_with("n1", "a.example.com", 3),
        *node_with("n2", "b.example.com", 1),
        waiting("greedy", "0/2 nodes are available"),
        waiting("shy", "not enough"),
    ]
    happened = [event("FailedScheduling", "2026-01-01T00:00:01Z")]
    return SavedFeed("test", ClusterObjects(objects, gates=FeatureGates.all_on()), happened)


def lines(app: TopApplication) -> list[str]:
    heat = app.query_one(HeatMap)
    return [heat.render_line(y).text.rstrip() for y in range(heat.size.height)]


def rows(app: TopApplication, table: str) -> list[list[str]]:
    found: DataTable[str] = app.query_one(table, DataTable)
    return [found.get_row_at(number) for number in range(found.row_count)]


async def press(pilot: Pilot[None], *keys: str) -> None:
    await pilot.press(*keys)
    await pilot.pause()


@on_loop
async def test_devices_pods_and_events_are_on_one_screen_of_80_columns() -> None:
    app = TopApplication(feed())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert lines(app)[:2] == ["n1  ·· ·· ··  0/3", "n2  ··  0/1"]
        assert rows(app, "#waiting")[0][:2] == ["default", "greedy"]
        assert rows(app, "#happened")[0][2:4] == ["FailedScheduling", "pod/p"]
        assert "4 cards: 0 used, 4 free" in str(app.query_one("#summary", Static).render())


@on_loop
async def test_keys_filter_and_escape_shows_everything_again() -> None:
    app = TopApplication(feed())
    async with app.run_test() as pilot:
        await press(pilot, "d")
        assert [row.node for row in app.content.rows] == ["n1"]
        await press(pilot, "d")
        assert [row.node for row in app.content.rows] == ["n2"]
        await press(pilot, "d")
        assert len(app.content.rows) == 2
        await press(pilot, "slash", *"shy", "enter")
        assert app.query_one("#filter", Input).display is False
        assert [row[1] for row in rows(app, "#waiting")] == ["shy"]
        await press(pilot, "escape")
        assert (len(app.content.waiting), len(app.content.rows)) == (2, 2)
        await press(pilot, "n", "f")
        assert str(app.wanted) == "namespace default, nodes with free cards"


@on_loop
async def test_enter_explains_the_pod_and_escape_goes_back() -> None:
    app = TopApplication(feed())
    async with app.run_test() as pilot:
        await press(pilot, "p", "enter")
        await pilot.pause()
        assert "Pod default/greedy" in str(app.screen.query_one(Static).render())
        await press(pilot, "escape")
        assert app.query_one(HeatMap)


@on_loop
async def test_a_change_is_shown_and_a_server_that_is_away_is_told() -> None:
    source = feed()
    app = TopApplication(source)
    async with app.run_test() as pilot:
        await pilot.pause()
        source._cluster = ClusterObjects(node_with("n9", "a.example.com", 1), gates=FeatureGates.all_on())
        source.revision += 1
        source.problem = "the server does not answer"
        await app.look()
        assert lines(app)[0] == "n9  ··  0/1"
        assert "does not answer" in str(app.query_one("#summary", Static).render())


@on_loop
async def test_a_large_cluster_is_scrolled_and_q_ends_it() -> None:
    many = [each for number in range(300) for each in node_with(f"n{number:03}", "a.example.com", 8)]
    app = TopApplication(SavedFeed("large", ClusterObjects(many, gates=FeatureGates.all_on()), []))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await press(pilot, "end")
        app.query_one(HeatMap).scroll_end(animate=False)
        await pilot.pause()
        assert lines(app)[-1].startswith("n299")
        await pilot.press("q")
    assert app.return_code == 0
