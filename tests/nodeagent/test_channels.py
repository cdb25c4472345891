"""The connection to a driver, over a real socket."""

from __future__ import annotations

import asyncio
import socket
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from drakit.nodeagent.plugins.channels import GrpcDriver
from drakit.nodeagent.plugins.contract import V1, ClaimIdentity, PluginCallFailed
from tests.nodeagent.grpcdriver import GrpcTestDriver
from tests.nodeagent.scene import on_loop

# A server closes a connection that nobody used for so long.
IDLE = (("grpc.max_connection_idle_ms", 200),)
CLAIMS = [ClaimIdentity("default", "u1", "claim")]
LONG = 600.0
"""A limit that no test waits for."""


class BlindDriver(GrpcDriver):
    """A peer that has not heard yet what became of its connection, as in the moment after it broke."""

    def _become(self, connected: bool) -> None:
        if connected:
            super()._become(connected)


@asynccontextmanager
async def connected(driver: GrpcTestDriver, kind: type[GrpcDriver] = GrpcDriver) -> AsyncIterator[GrpcDriver]:
    peer, ready = kind(str(driver.endpoint)), asyncio.Event()
    peer.on_change(ready.set)
    try:
        async with asyncio.timeout(120):
            await ready.wait()
            yield peer
    finally:
        await peer.close()


@on_loop
async def test_a_connection_that_the_driver_closed_for_idleness_is_made_again_and_used() -> None:
    with tempfile.TemporaryDirectory(prefix="dn") as directory:
        async with GrpcTestDriver("gpu.example.com", Path(directory), options=IDLE).running() as driver:
            peer, seen = GrpcDriver(str(driver.endpoint)), list[bool]()
            again = asyncio.Event()

            def note() -> None:
                seen.append(peer.connected)
                if seen == [True, False, True]:
                    again.set()

            peer.on_change(note)
            try:
                async with asyncio.timeout(120):
                    await again.wait()
                answers = await peer.prepare(V1, CLAIMS, limit=30.0)
            finally:
                await peer.close()
            assert driver.calls == [("prepare", ["claim"])]
            assert [each.device for each in answers["u1"].devices] == ["dev-claim"]


@on_loop
async def test_a_call_right_after_the_connection_broke_fails_with_the_cause_instead_of_waiting_for_the_driver() -> None:
    with tempfile.TemporaryDirectory(prefix="dn") as directory:
        driver = GrpcTestDriver("gpu.example.com", Path(directory))
        await driver.start()
        async with connected(driver, BlindDriver) as peer:
            await driver.stop()
            assert peer.connected
            with pytest.raises(PluginCallFailed) as failure:
                await peer.prepare(V1, CLAIMS, limit=LONG)
            assert failure.value.code == "Unavailable"
            assert f"dial unix {driver.endpoint}: connect: no such file or directory" in failure.value.detail


@on_loop
async def test_a_call_right_after_the_driver_was_replaced_reaches_the_new_one() -> None:
    with tempfile.TemporaryDirectory(prefix="dn") as directory:
        driver = GrpcTestDriver("gpu.example.com", Path(directory))
        await driver.start()
        async with connected(driver, BlindDriver) as peer:
            await driver.stop()
            async with GrpcTestDriver("gpu.example.com", Path(directory)).running() as second:
                assert list(await peer.prepare(V1, CLAIMS, limit=LONG)) == ["u1"]
                assert (driver.calls, second.calls) == ([], [("prepare", ["claim"])])


@on_loop
async def test_a_driver_that_dies_in_a_call_fails_it_at_once() -> None:
    with tempfile.TemporaryDirectory(prefix="dn") as directory:
        driver = GrpcTestDriver("gpu.example.com", Path(directory))
        await driver.start()
        driver.go.clear()
        async with connected(driver) as peer:
            call = asyncio.ensure_future(peer.prepare(V1, CLAIMS, limit=LONG))
            while not driver.calls:
                await asyncio.sleep(0.01)
            await driver.stop()
            with pytest.raises(PluginCallFailed) as failure:
                await call
            assert failure.value.code in ("Unavailable", "Canceled")


@on_loop
async def test_a_driver_that_stops_in_good_order_still_answers_the_call_that_it_has() -> None:
    with tempfile.TemporaryDirectory(prefix="dn") as directory:
        driver = GrpcTestDriver("gpu.example.com", Path(directory))
        await driver.start()
        driver.go.clear()
        async with connected(driver) as peer:
            call = asyncio.ensure_future(peer.prepare(V1, CLAIMS, limit=LONG))
            while not driver.calls:
                await asyncio.sleep(0.01)
            service = driver._servers.pop(0)
            stop = asyncio.ensure_future(service.stop(LONG))
            while peer.connected:
                await asyncio.sleep(0.01)
            driver.go.set()
            assert list(await call) == ["u1"]
            await stop
        await driver.stop()


@on_loop
async def test_what_a_driver_says_of_its_own_connections_is_passed_on() -> None:
    with tempfile.TemporaryDirectory(prefix="dn") as directory:
        async with GrpcTestDriver("gpu.example.com", Path(directory)).running() as driver, connected(driver) as peer:
            driver.fail = ["failed to connect to all addresses; last error: of unix:/elsewhere.sock"]
            with pytest.raises(PluginCallFailed, match=r"of unix:/elsewhere\.sock"):
                await peer.prepare(V1, CLAIMS, limit=LONG)
            assert driver.calls == [("prepare", ["claim"])]


@on_loop
async def test_a_driver_that_tells_of_a_broken_pipe_of_its_own_is_asked_once_more() -> None:
    with tempfile.TemporaryDirectory(prefix="dn") as directory:
        async with GrpcTestDriver("gpu.example.com", Path(directory)).running() as driver, connected(driver) as peer:
            driver.fail = ["Stream removed (sendmsg: Broken pipe (32))"] * 9
            with pytest.raises(PluginCallFailed, match="Broken pipe"):
                await peer.prepare(V1, CLAIMS, limit=LONG)
            assert driver.calls == [("prepare", ["claim"])] * 2


@contextmanager
def mute_socket() -> Iterator[str]:
    """Somebody listens and nobody speaks: the channel never becomes ready."""
    with tempfile.TemporaryDirectory(prefix="dn") as directory, socket.socket(socket.AF_UNIX) as listener:
        path = f"{directory}/mute.sock"
        listener.bind(path)
        listener.listen(16)
        yield path


@on_loop
async def test_a_peer_that_is_closed_while_it_connects_fails_its_call() -> None:
    with mute_socket() as endpoint:
        peer = GrpcDriver(endpoint)
        call = asyncio.ensure_future(peer.prepare(V1, CLAIMS, limit=LONG))
        await asyncio.sleep(0)
        await peer.close()
        async with asyncio.timeout(120):
            with pytest.raises(PluginCallFailed, match="code = Canceled"):
                await call


@on_loop
async def test_a_socket_at_which_nobody_speaks_costs_a_call_its_deadline_and_no_more() -> None:
    with mute_socket() as endpoint:
        peer = GrpcDriver(endpoint)
        async with asyncio.timeout(120):
            with pytest.raises(PluginCallFailed, match="code = DeadlineExceeded desc = context deadline exceeded"):
                await peer.prepare(V1, CLAIMS, limit=0.5)
        await peer.close()


class SlowToConnect(GrpcDriver):
    async def _until_connected(self) -> None:
        await asyncio.sleep(1.0)
        await super()._until_connected()


class DriverOnAClock(GrpcTestDriver):
    left = 0.0

    async def _called(self, what: str, request: Any, context: Any) -> None:
        self.left = context.time_remaining()
        await super()._called(what, request, context)


@on_loop
async def test_the_wait_for_a_connection_counts_as_part_of_the_call() -> None:
    with tempfile.TemporaryDirectory(prefix="dn") as directory:
        async with DriverOnAClock("gpu.example.com", Path(directory)).running() as driver:
            assert isinstance(driver, DriverOnAClock)
            async with connected(driver, SlowToConnect) as peer:
                await peer.prepare(V1, CLAIMS, limit=45.0)
            assert driver.left <= 44.0


@on_loop
async def test_an_answer_of_many_megabytes_is_taken() -> None:
    with tempfile.TemporaryDirectory(prefix="dn") as directory:
        async with GrpcTestDriver("gpu.example.com", Path(directory)).running() as driver, connected(driver) as peer:
            ids = [f"vendor.com/class={number:0100}" for number in range(80_000)]
            driver.cdi_id = lambda _: ids
            answers = await peer.prepare(V1, CLAIMS, limit=LONG)
            assert answers["u1"].devices[0].cdi_ids == tuple(ids)
