"""Turns on the loop: a few pieces of work each, flow by flow."""

from __future__ import annotations

import asyncio

from drakit.apiserver.http.turns import Turns
from tests.builders.loop import on_loop


async def done_in_each_turn(turns: Turns, order: list[str]) -> list[list[str]]:
    """What was done, by turn of the loop, until there is no more."""
    found = [order.copy()]
    while True:
        before = len(order)
        await asyncio.sleep(0)
        if len(order) == before:
            return found
        found.append(order[before:])


@on_loop
async def test_little_work_is_done_at_once() -> None:
    order: list[str] = []
    turns = Turns(2)
    turns.take("ann", lambda: order.append("a"))
    assert order == ["a"]
    await asyncio.sleep(0)
    turns.take("ann", lambda: order.append("b"))
    turns.take("ann", lambda: order.append("c"))
    assert order == ["a", "b", "c"]


@on_loop
async def test_a_flow_waits_behind_its_own_and_others_come_between() -> None:
    order: list[str] = []
    turns = Turns(2)
    for number in range(6):
        turns.take("mob", lambda name=f"m{number}": order.append(name))  # type: ignore[misc]
    for number in range(2):
        turns.take("ann", lambda name=f"a{number}": order.append(name))  # type: ignore[misc]
    assert await done_in_each_turn(turns, order) == [["m0", "m1"], ["m2", "a0"], ["m3", "a1"], ["m4", "m5"]]


@on_loop
async def test_whoever_gives_up_waiting_holds_nobody_up() -> None:
    turns = Turns(1)
    first, second, third = (asyncio.create_task(turns.wait("ann")) for _ in range(3))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.gather(first, third)
    assert second.cancelled()
