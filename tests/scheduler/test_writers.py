"""Writes that nobody waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from drakit.scheduler.writers import COURTESY, MOST, NOTE_LIMIT, Writers, cut
from tests.builders.schedulercluster import on_loop


async def turns(count: int = 4 * COURTESY) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@on_loop
async def test_writes_about_one_pod_are_done_in_order_and_a_slow_one_holds_up_no_other_pod() -> None:
    done: list[str] = []
    gate = asyncio.Event()

    def write(what: str, *, slow: bool = False) -> Callable[[], Awaitable[object]]:
        async def run() -> None:
            if slow:
                await gate.wait()
            done.append(what)

        return run

    writers = Writers()
    running = asyncio.create_task(writers.run())
    writers.later("a", write("a1", slow=True))
    writers.later("a", write("a2"))
    for other in "bcdefgh":
        writers.later(other, write(other))
    await turns()
    assert "a2" not in done
    assert len(done) >= 4
    assert not writers.is_idle
    gate.set()
    await writers.done()
    assert done.index("a1") < done.index("a2")
    assert sorted(done) == ["a1", "a2", *"bcdefgh"]
    running.cancel()


@on_loop
async def test_a_write_that_fails_is_logged_and_the_next_one_is_done() -> None:
    done: list[str] = []

    async def fail() -> None:
        raise RuntimeError("no")

    async def succeed() -> None:
        done.append("yes")

    writers = Writers()
    running = asyncio.create_task(writers.run())
    writers.later("a", fail)
    writers.later("a", succeed)
    await writers.done()
    assert done == ["yes"]
    running.cancel()


@on_loop
async def test_who_has_too_much_to_write_waits_for_room() -> None:
    async def write() -> None:
        await asyncio.sleep(0)

    writers = Writers()
    for number in range(MOST):
        writers.later(str(number), write)
    waiting = asyncio.create_task(writers.room())
    await turns()
    assert not waiting.done()
    running = asyncio.create_task(writers.run())
    await waiting
    assert not writers.is_idle
    await writers.done()
    running.cancel()


def test_a_message_that_is_too_long_is_cut() -> None:
    assert cut("x" * NOTE_LIMIT) == "x" * NOTE_LIMIT
    assert cut("x" * (NOTE_LIMIT + 1)) == "x" * (NOTE_LIMIT - 4) + " ..."
