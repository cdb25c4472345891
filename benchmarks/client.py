"""The client and the informers: round trips in process and over sockets, events to caches, queues.

`python -m benchmarks.client` prints the table and keeps it in `benchmarks/results/client.md`. The server for the rows
over sockets runs in a process of its own, as servers do.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import uvloop

from benchmarks.report import publish
from drakit.api import DeviceClaim, DeviceRequest, ExactDeviceRequest, ObjectMeta, ResourceClaim, ResourceClaimSpec
from drakit.apiserver import build_server
from drakit.apiserver.auth.certificates import Authority
from drakit.apiserver.http.listener import Listener, Security, bind
from drakit.base.clock import FakeClock, RealClock
from drakit.client import CLAIMS, Access, Client, Fixed, InProcess, Trust
from drakit.client.transport.http import Http
from drakit.informers import Informers, ObjectCache, WorkQueue
from drakit.store import MemoryStore

OBJECTS = 10_000
Row = list[str]
Work = Callable[[], Awaitable[object]]


def claim(name: str) -> ResourceClaim:
    request = DeviceRequest(name="gpu", exactly=ExactDeviceRequest(device_class_name="gpu.example.com"))
    return ResourceClaim(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=ResourceClaimSpec(devices=DeviceClaim(requests=(request,))),
    )


async def seconds_of(work: Work, count: int, *, rounds: int = 3) -> float:
    """Seconds for one call: the best of several rounds."""
    best = float("inf")
    for _ in range(rounds):
        begun = time.perf_counter()
        for _ in range(count):
            await work()
        best = min(best, (time.perf_counter() - begun) / count)
    return best


async def in_parallel(work: Work, count: int, tasks: int = 50) -> float:
    """Seconds for one call when many are under way."""

    async def some() -> None:
        for _ in range(count // tasks):
            await work()

    begun = time.perf_counter()
    await asyncio.gather(*(some() for _ in range(tasks)))
    return (time.perf_counter() - begun) / count


def micro(seconds: float) -> str:
    return f"{seconds * 1e6:,.1f} µs"


def per_second(seconds: float) -> str:
    return f"{1 / seconds:,.0f} per s"


@asynccontextmanager
async def a_client() -> AsyncIterator[Client]:
    clock = RealClock()
    async with MemoryStore(clock=clock) as store:
        yield Client(InProcess(await build_server(store, clock=clock)), clock=clock)


async def round_trips(name: str, client: Client) -> list[Row]:
    await client.create(claim("one"))
    numbers = iter(range(1_000_000))

    async def get() -> object:
        return await client.get(CLAIMS, "one", namespace="default")

    async def create() -> object:
        return await client.create(claim(f"made-{next(numbers)}"))

    async def patch() -> object:
        found = await client.get(CLAIMS, "one", namespace="default")
        return await client.patch(found, {"metadata": {"labels": {"n": str(next(numbers))}}}, versioned=False)

    rows = []
    for what, work, count in (("get", get, 1000), ("create", create, 300), ("get and patch", patch, 300)):
        one = await seconds_of(work, count)
        many = await in_parallel(work, count)
        rows.append([f"{what}, {name}", micro(one), f"50 at a time: {per_second(many)}"])
    return rows


async def fill(client: Client, count: int = OBJECTS) -> None:
    await asyncio.gather(*(_fill(client, range(start, count, 50)) for start in range(50)))


async def _fill(client: Client, numbers: range) -> None:
    for number in numbers:
        await client.create(claim(f"c-{number}"))


async def synchronise(name: str, client: Client) -> list[Row]:
    rows = []
    for streaming in (True, False):
        best = float("inf")
        for _ in range(3):
            informers = Informers(client, streaming=streaming)
            claims = informers.of(CLAIMS)
            begun = time.perf_counter()
            async with informers.running():
                best = min(best, time.perf_counter() - begun)
                assert len(claims.cache) >= OBJECTS
        way = "streaming list" if streaming else "list and watch"
        rows.append([f"informer sync of {OBJECTS:,} claims, {way}, {name}", f"{best * 1e3:,.0f} ms",
                     f"{micro(best / OBJECTS)} per object"])  # fmt: skip
    return rows


async def replayed() -> list[Row]:
    """What one event costs from the watch to cache, index and queue: history is read again by a new watch."""
    async with a_client() as client:
        first = await client.create(claim("first"))
        await fill(client, 5000)
        best = float("inf")
        for _ in range(3):
            informers = Informers(client)
            claims = informers.of(CLAIMS)
            claims.add_index("name", lambda obj: [obj.metadata.name])
            queue: WorkQueue[object] = WorkQueue(RealClock())
            claims.enqueue(queue.add)
            claims.reflector.version = first.metadata.resource_version
            done = asyncio.Event()
            claims.subscribe(_set_when_full(claims.cache, done))
            begun = time.perf_counter()
            informers.start()
            await done.wait()
            best = min(best, time.perf_counter() - begun)
            await informers.stop()
        return [["one event, from the watch to cache, index and queue, in process", micro(best / 5000), ""]]


def _set_when_full(cache: ObjectCache[ResourceClaim], done: asyncio.Event) -> Callable[[object, object], None]:
    return lambda _, __: done.set() if len(cache) == 5000 else None


def queueing() -> list[Row]:
    queue: WorkQueue[int] = WorkQueue(FakeClock())
    best = float("inf")
    for _ in range(5):
        begun = time.perf_counter()
        for key in range(10_000):
            queue.add(key)
        while (taken := queue.take()) is not None:
            queue.done(taken)
        best = min(best, (time.perf_counter() - begun) / 10_000)
    return [["work queue: add, take, done", micro(best), ""]]


@asynccontextmanager
async def served(directory: Path | None) -> AsyncIterator[Client]:
    """A client of a server in another process; with TLS if there is a directory for its certificates."""
    command = [sys.executable, "-m", "benchmarks.client", "serve", *([str(directory)] if directory else [])]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        url = (await process.stdout.readline()).decode().strip()
        trust = Trust(ca=(directory / "ca.crt").read_bytes()) if directory else Trust()
        async with Client(Http(Access(server=url, credentials=Fixed(), trust=trust))) as client:
            yield client
    finally:
        process.terminate()
        await process.wait()


async def serve(directory: Path | None) -> None:
    clock = RealClock()
    async with MemoryStore(clock=clock) as store:
        security = Security(Authority(directory, clock.now()).server(("127.0.0.1",))) if directory else None
        bound = bind("127.0.0.1", 0)
        async with Listener(await build_server(store, clock=clock), bound, security).running():
            scheme = "https" if security else "http"
            print(f"{scheme}://127.0.0.1:{bound.getsockname()[1]}", flush=True)
            await asyncio.Event().wait()


async def measure() -> list[Row]:
    rows = []
    async with a_client() as client:
        rows += await round_trips("in process", client)
        await fill(client)
        rows += await synchronise("in process", client)
    rows += await replayed()
    rows += queueing()
    with tempfile.TemporaryDirectory() as directory:
        for name, place in (("over HTTP", None), ("over HTTPS", Path(directory))):
            async with served(place) as client:
                rows += await round_trips(name, client)
                if place is None:
                    await fill(client)
                    rows += await synchronise(name, client)
    return rows


def main() -> None:
    rows = uvloop.run(measure())
    publish("client", "Client and informers", ["what", "time", "more"], rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        uvloop.run(serve(Path(sys.argv[2]) if len(sys.argv) > 2 else None))
    else:
        main()
