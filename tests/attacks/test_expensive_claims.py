"""Claims that cost much: nobody waits for them but their pods, and those are told."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, cast
from unittest.mock import MagicMock

import pytest
from msgspec.structs import replace

from drakit.allocator import Allocator, Inventory, OutOfTime
from drakit.allocator.inventory import selectors as evaluating
from drakit.allocator.inventory.nodes import NodeDevices
from drakit.allocator.inventory.pools import Pool, PoolView
from drakit.allocator.inventory.shapes import DeviceShape, ShapeMatch
from drakit.api import DeviceClass, Node, Pod, ResourceClaim, ResourceSlice, from_plain
from drakit.base.clock import FakeClock, RealClock
from drakit.scheduler.dynamicresources import PluginContext
from drakit.scheduler.dynamicresources.points.filter import TIMED_OUT
from drakit.scheduler.dynamicresources.sentences import told_more
from drakit.scheduler.dynamicresources.state import budgets
from drakit.scheduler.dynamicresources.state.budgets import AttemptBudget, BackgroundSearch
from drakit.scheduler.dynamicresources.state.context import NAME
from drakit.scheduler.dynamicresources.state.needs import PodNeeds, Variant
from drakit.scheduler.framework import CycleState, NodeInfo, Nodes
from drakit.selectors import Gates
from tests.builders.cluster import on_loop
from tests.builders.documents import CLASS, claim_document, class_document, request_of, slice_document
from tests.builders.manifests import claim
from tests.builders.podmanifests import node, pod
from tests.scheduler.dynamicresources.choosing import Plugins
from tests.scheduler.dynamicresources.scenes import bare_slice, message_of, scene, user

DEVICES = 40


def inventory(nodes: int = 1) -> Inventory:
    """Nodes with devices that all differ, so that a selector has to look at each."""
    made = Inventory()
    made.put(from_plain(DeviceClass, class_document(CLASS, "device.driver != ''")))
    for number in range(nodes):
        devices = [
            {"name": f"d{each}", "attributes": {"id": {"string": f"{number}-{each}"}}} for each in range(DEVICES)
        ]
        made.put(
            from_plain(ResourceSlice, slice_document(f"s{number}", *devices, node=f"n{number}", pool=f"n{number}"))
        )
    return made


def claims() -> list[ResourceClaim]:
    return [from_plain(ResourceClaim, claim_document("c", request_of(allocationMode="ExactCount", count=1)))]


class Countdown:
    """Time is over after so many looks."""

    def __init__(self, looks: int) -> None:
        self.left = looks

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


def test_the_time_of_a_node_covers_its_selectors() -> None:
    stopped = Allocator(inventory(), claims(), expired=Countdown(10)).allocate("n0")
    assert isinstance(stopped, OutOfTime)


def test_what_was_evaluated_is_not_evaluated_again(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated: list[str] = []
    plain = evaluating.evaluate

    def counted(text: str, shape: DeviceShape, *, gates: Gates) -> ShapeMatch:
        evaluated.append(shape.device.attributes["id"].string or "")
        return plain(text, shape, gates=gates)

    monkeypatch.setattr(evaluating, "evaluate", counted)
    there = inventory()
    for _ in range(20):
        Allocator(there, claims(), expired=Countdown(5)).allocate("n0")
    assert len(evaluated) == len(set(evaluated)) == DEVICES


class StuckInventory(Inventory):
    """Nobody learns what a node sees before `go` is set."""

    def __init__(self, go: threading.Event) -> None:
        super().__init__()
        self._go = go

    def fork(self) -> Inventory:
        return self

    def state(self, node: str) -> NodeDevices:
        self._go.wait(30)
        return super().state(node)


class Ticking(FakeClock):
    """A look at the clock takes a hundredth of a second."""

    def monotonic(self) -> float:
        self.advance(0.01)
        return super().monotonic()


def test_an_attempt_has_one_time_for_all_its_nodes() -> None:
    budget = AttemptBudget(Ticking(), 10.0, budgets.ON_LOOP)
    there = inventory(nodes=50)
    allocator = Allocator(there, claims(), timer=budget.begin)
    answers = list(allocator.answers([f"n{number}" for number in range(50)]))
    assert all(answer.is_out_of_time for answer in answers)
    assert budget.interrupted


def test_a_thread_finds_what_the_loop_had_no_time_for() -> None:
    there, clock = inventory(nodes=3), Ticking()
    background = BackgroundSearch(clock, 10.0)
    nodes = [f"n{number}" for number in range(3)]
    background.begin(there, claims(), nodes)
    finish()
    again = Allocator(there, claims(), timer=AttemptBudget(clock, 10.0, budgets.ON_LOOP).begin)
    assert not any(answer.is_out_of_time for answer in again.answers(nodes))
    assert not background.is_exhausted(again.cost_key)


def test_claims_that_had_all_their_time_are_told_so_and_get_it_again_later() -> None:
    there, clock = inventory(nodes=3), Ticking()
    background = BackgroundSearch(clock, 0.05)
    background.begin(there, claims(), ["n0", "n1", "n2"])
    finish()
    key = Allocator(there, claims()).cost_key
    assert background.is_exhausted(key)
    clock.advance(3600.0)
    assert not background.is_exhausted(key)


@pytest.mark.parametrize(("clock", "evaluated"), [(FakeClock(), DEVICES), (Ticking(), 1)])
def test_why_a_pod_waits_is_told_within_a_moment(
    clock: FakeClock, evaluated: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of claims that had all their time, no selector is evaluated again on the loop for the sake of a sentence."""
    looked_at: list[DeviceShape] = []

    def counted(text: str, shape: DeviceShape, *, gates: Gates) -> ShapeMatch:
        looked_at.append(shape)
        return ShapeMatch(False)

    monkeypatch.setattr(evaluating, "evaluate", counted)
    needs = PodNeeds([MagicMock()])
    needs.variant = Variant(claims(), [0], Allocator(inventory(), claims()))
    state = CycleState(from_plain(Pod, pod("p")))
    state.put(NAME, needs)
    nodes = cast("Nodes", {"n0": NodeInfo(from_plain(Node, node("n0")))})
    told = told_more(nodes, clock, state, {"n0": replace(TIMED_OUT, plugin=NAME)})
    assert (bool(told), len(looked_at) <= evaluated) == (clock.__class__ is FakeClock, True)


def finish() -> None:
    for thread in threading.enumerate():
        if thread.name == "drakit-allocator":
            thread.join(30)


def test_attempts_wait_for_the_thread_that_finds_what_the_loop_had_no_time_for() -> None:
    go = threading.Event()
    there, background = StuckInventory(go), BackgroundSearch(RealClock(), 10.0)
    background.begin(there, claims(), ["n0", "n1", "n2"])
    key = Allocator(there, claims(), snapshot=False).cost_key
    assert background.is_under_way(key)

    async def wait() -> bool:
        asyncio.get_running_loop().call_later(0.02, go.set)
        return await background.finished()

    assert asyncio.run(wait())
    assert not background.is_under_way(key)


@on_loop
async def test_attempts_do_not_wait_long_for_one_expensive_set_of_claims_after_the_other() -> None:
    clock = FakeClock()
    background = BackgroundSearch(clock, 10.0)
    waited: list[float] = []
    for _ in range(2):
        go = threading.Event()
        background.begin(StuckInventory(go), claims(), ["n0"])
        for _ in range(2):
            began, waiting = clock.monotonic(), asyncio.ensure_future(background.finished())
            while not waiting.done():
                await asyncio.sleep(0)
                clock.advance(0.01)
            assert not waiting.result()
            waited.append(clock.monotonic() - began)
        go.set()
        finish()
    assert waited == pytest.approx([budgets.PATIENCE, 0.0, budgets.BRIEF, 0.0], abs=0.05)


@pytest.mark.parametrize("looks", [1, 30])
def test_the_time_of_a_node_covers_its_views_and_a_later_attempt_goes_on_there(
    looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of pools that all nodes reach, a few are looked at before the time is over; none of them twice."""
    there, built = Inventory(), list[str]()
    there.put(from_plain(DeviceClass, class_document(CLASS, "device.driver != ''")))
    for number in range(50):
        document = slice_document(f"s{number}", {"name": "d"}, pool=f"p{number}")
        document["spec"].pop("nodeName", None)
        there.put(from_plain(ResourceSlice, {**document, "spec": {**document["spec"], "allNodes": True}}))
    build = Pool._build

    def counted(pool: Pool, *args: Any) -> PoolView | None:
        built.append(pool.key[1])
        return build(pool, *args)

    monkeypatch.setattr(Pool, "_build", counted)
    assert isinstance(Allocator(there, claims(), expired=Countdown(60 + looks)).allocate("n0"), OutOfTime)
    assert len(built) <= looks + 10
    assert not isinstance(Allocator(there, claims()).allocate("n0"), OutOfTime)
    assert len(built) == len(set(built)) == 50


@on_loop
async def test_an_expensive_pod_is_told_so_and_placed_later_while_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    go, work = threading.Event(), BackgroundSearch._work

    def later(background: BackgroundSearch, *args: Any) -> None:
        go.wait(30)
        work(background, *args)

    monkeypatch.setattr(budgets, "PATIENCE", 0.0)
    monkeypatch.setattr(BackgroundSearch, "_work", later)
    plugins = Plugins()
    async with scene(makers=plugins.makers) as it:
        devices = [{"name": f"d{each}", "attributes": {"id": {"string": str(each)}}} for each in range(DEVICES)]
        await it.create(bare_slice("s", devices))
        [plugin] = plugins.made
        plugin.context.handle.clock = Ticking()
        plugin.context = PluginContext(plugin.context.handle)
        await it.create(claim("c"), user("p"), pod("other"))
        assert "takes long" in await message_of(it, "p")
        assert await it.node_of("other") == "node-1"
        go.set()
        finish()
        await it.run_for(2.0)
        assert await it.node_of("p") == "node-1"
