"""kill -9 at every step of prepare, unprepare and publish, with real processes; then start again."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import grpc.aio
import msgspec

from drakit.client import CLAIMS, SLICES
from drakit.driverkit import ClaimRef
from tests.client.servers import listening
from tests.driverkit.node import LedNode, led_node, on_loop
from tests.driverkit.victim import Life
from tests.driverkit.wire import Kubelet

ROOT = Path(__file__).parents[2]
KILLED = -signal.SIGKILL


class Victim:
    """One driver at a time, of which every life is a process."""

    def __init__(self, node: LedNode, url: str, process: asyncio.subprocess.Process) -> None:
        self.node = node
        self._url = url
        self._process = process
        self._pid = 0

    async def _read(self) -> dict[str, int]:
        assert self._process.stdout is not None
        return json.loads(await self._process.stdout.readline())  # type: ignore[no-any-return]

    async def start(self, **changes: Any) -> None:
        (self.node.root / "ready").unlink(missing_ok=True)
        life = Life(url=self._url, root=self.node.root, **changes)
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(life, enc_hook=str) + b"\n")
        self._pid = (await self._read())["pid"]

    async def ended(self) -> int:
        return (await self._read())["ended"]

    async def stop(self) -> None:
        os.kill(self._pid, signal.SIGTERM)
        assert await self.ended() == 0

    async def is_ready(self) -> bool:
        return (self.node.root / "ready").exists()

    async def call(self, method: str, ref: ClaimRef) -> str | None:
        """The error of the answer; none when there was no answer, since the process died."""
        claim = {"namespace": ref.namespace, "name": ref.name, "uid": ref.uid}
        async with Kubelet(self.node.root / "plugins" / "leds.example.com" / "dra.sock") as kubelet:
            try:
                answer = await (kubelet.prepare([claim]) if method == "prepare" else kubelet.unprepare([claim]))
            except grpc.aio.AioRpcError:
                return None
        return str(answer[ref.uid].get("error", ""))

    async def insist(self, method: str, ref: ClaimRef) -> bool:
        """Call until it is done, starting again when the process dies, as a kubelet does. Whether it died."""
        error = await self.call(method, ref)
        if error is None:
            assert await self.ended() == KILLED
            await self.start()
            await self.node.until(self.is_ready)
            assert await self.call(method, ref) == ""
            return True
        assert error == ""
        return False

    def left(self) -> dict[str, list[str]]:
        """What there is of any claim."""
        state = self.node.root / "plugins" / "leds.example.com"
        places = {"lit": self.node.root / "lit", "cdi": self.node.root / "cdi", "records": state / "claims"}
        return {name: sorted(path.name for path in place.glob("*")) for name, place in places.items()}


@asynccontextmanager
async def victim() -> AsyncIterator[Victim]:
    async with led_node() as node, listening(node.server) as url:
        (node.root / "lit").mkdir()
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.driverkit.victim",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, cwd=ROOT,
        )  # fmt: skip
        try:
            yield Victim(node, url, process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            await process.wait()


NOTHING: dict[str, list[str]] = {"lit": [], "cdi": [], "records": []}


@on_loop
async def test_killed_at_every_step_of_prepare_and_unprepare_nothing_leaks_or_is_prepared_twice() -> None:
    async with victim() as found:
        died, step = True, 0
        while died:
            step += 1
            await found.start(dies_at=step)
            await found.node.until(found.is_ready)
            ref = await found.node.claim(f"blink-{step}")
            died = await found.insist("prepare", ref)
            left = found.left()
            assert (len(left["lit"]), len(left["cdi"]), len(left["records"])) == (1, 1, 1), f"step {step}"
            died = await found.insist("unprepare", ref) or died
            assert found.left() == NOTHING, f"step {step}"
            await found.stop()
        steps = (found.node.root / "steps").read_text()
        assert step > 12
        assert "after switching on" in steps
        assert "after removing .json" in steps


@on_loop
async def test_killed_in_prepare_and_never_asked_again_the_claim_is_swept() -> None:
    async with victim() as found:
        for step in (2, 4, 6, 8):
            await found.start(dies_at=step)
            await found.node.until(found.is_ready)
            ref = await found.node.claim()
            assert await found.call("prepare", ref) is None
            assert await found.ended() == KILLED
            await found.node.client.delete(CLAIMS, "blink", namespace="default")
            await found.start()
            await found.node.until(found.is_ready)
            await found.node.until(lambda: _is_clean(found))
            await found.stop()


async def _is_clean(found: Victim) -> bool:
    return found.left() == NOTHING


@on_loop
async def test_killed_at_every_step_of_publishing_the_slices_become_whole() -> None:
    async with victim() as found:
        died, step = True, 0
        while died:
            step += 1
            await found.start(dies_at=step, dies_in="publish", devices=300)
            ending = asyncio.ensure_future(found.ended())
            whole = asyncio.ensure_future(found.node.until(lambda: _are_whole(found.node), turns=4000))
            await asyncio.wait((ending, whole), return_when=asyncio.FIRST_COMPLETED)
            died = ending.done() or not whole.done()  # it may die in the step that makes them whole
            if died:
                assert await ending == KILLED
                await found.start(devices=300)
                await whole
                await found.node.until(found.is_ready)  # the slices may have been whole before it came
                await found.stop()
            else:
                with suppress(ProcessLookupError):
                    os.kill(found._pid, signal.SIGTERM)
                await ending
            assert len({each.metadata.name[:5] for each in await found.node.slices()}) == 3
            for each in await found.node.slices():
                await found.node.client.delete(SLICES, each.metadata.name)
        assert step > 5


async def _are_whole(node: LedNode) -> bool:
    slices = await node.slices()
    names = [device.name for each in slices for device in each.spec.devices]
    counts = {(each.spec.pool.generation, each.spec.pool.resource_slice_count) for each in slices}
    return names == [f"led-{number}" for number in range(300)] and len(counts) == 1
