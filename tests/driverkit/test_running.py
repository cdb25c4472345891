"""A driver in a process: served until a signal comes; what it says when the server is in a mood."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable

import pytest

from drakit.api.exchange import Request, Response
from drakit.base.clock import RealClock
from drakit.client import CLAIMS, Access, Client, ConnectionFailed, Fixed, InProcess, Trust
from drakit.driverkit import KubeletPlugin, serve
from drakit.driverkit.calls.sweep import INTERVAL
from tests.client.servers import listening
from tests.driverkit.moods import Moody, refusal
from tests.driverkit.node import HastyClock, LedNode, Leds, led_node, led_plugin, on_loop


@on_loop
async def test_one_call_serves_a_driver_until_it_is_told_to_stop() -> None:
    async with led_node() as node, listening(node.server) as url:
        access = Access(server=url, credentials=Fixed(), trust=Trust())
        serving = asyncio.create_task(serve(Leds(), access=access, settings=node.settings()))
        await node.until(node.slices)
        await node.until(lambda: _exists(node))
        os.kill(os.getpid(), signal.SIGTERM)
        await serving
        assert list((node.root / "registry").iterdir()) == []


async def _exists(node: LedNode) -> bool:
    return (node.root / "registry" / "leds.example.com-reg.sock").exists()


MOODS: dict[str, tuple[Callable[[], Response | Exception], str]] = {
    "403": (lambda: refusal(403, "Forbidden"), "claim default/blink: moody 403"),
    "409": (lambda: refusal(409, "Conflict"), "claim default/blink: moody 409"),
    "500": (lambda: refusal(500, "InternalError"), "claim default/blink: moody 500"),
    "nothing": (lambda: ConnectionFailed("nobody answers", sent=False), "claim default/blink: nobody answers"),
}


@pytest.mark.parametrize("mood", MOODS)
def test_a_server_that_does_not_give_the_claim_fails_it_with_its_words(mood: str) -> None:
    answer, error = MOODS[mood]

    @on_loop
    async def run() -> None:
        async with led_node() as node:
            ref = await node.claim()
            moody = Moody(node)
            async with Client(InProcess(moody)) as client:
                driver = Leds()
                plugin = node.plugin(driver, client=client)
                await plugin.start()
                moody.mood = lambda request: answer() if "resourceclaims/" in request.path else None
                assert (await plugin.prepare([ref]))[ref.uid].error.startswith(error)
                assert driver.log == []
                moody.mood = lambda _: None
                assert (await plugin.prepare([ref]))[ref.uid].error == ""

    run()


class Patient(RealClock):
    """Sleeps only when it is told for how long, and notes it."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self.wake = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.asked.append(seconds)
        await self.wake.wait()
        self.wake.clear()


@on_loop
async def test_claims_are_swept_at_the_start_and_every_ten_minutes() -> None:
    async with led_plugin() as (node, _, driver):
        clock = Patient()
        plugin: KubeletPlugin = node.plugin(driver, clock=clock)
        first, second = await node.claim("first"), await node.claim("second", "led-1")
        await plugin.prepare([first, second])
        await node.client.delete(CLAIMS, "first", namespace="default")
        sweeping = asyncio.create_task(plugin.sweep.run())
        await node.until(lambda: _is(driver.lit == {second.uid} and clock.asked == [INTERVAL]))
        await node.client.delete(CLAIMS, "second", namespace="default")
        clock.wake.set()
        await node.until(lambda: _is(driver.lit == set()))
        sweeping.cancel()
        await asyncio.gather(sweeping, return_exceptions=True)


async def _is(value: bool) -> bool:
    return value


@on_loop
async def test_a_server_that_is_away_keeps_claims_from_being_swept() -> None:
    async with led_node() as node:
        ref = await node.claim()
        moody = Moody(node)
        async with Client(InProcess(moody)) as client:
            driver = Leds()
            plugin = node.plugin(driver, client=client)
            await plugin.start()
            await plugin.prepare([ref])
            moody.mood = _away
            await plugin.sweep.sweep()
            assert driver.lit == {ref.uid}
            assert await plugin.unprepare([ref]) == {ref.uid: ""}


@on_loop
async def test_a_server_that_hangs_does_not_hold_up_a_claim_that_is_prepared() -> None:
    async with led_node() as node:
        ref = await node.claim()
        moody = Moody(node)
        async with Client(InProcess(moody)) as client:
            plugin = node.plugin(Leds(), client=client, clock=HastyClock())
            await plugin.start()
            first = await plugin.prepare([ref])
            moody.hangs = True
            assert await plugin.prepare([ref]) == first


def _away(_: Request) -> Exception:
    return ConnectionFailed("nobody answers", sent=False)
