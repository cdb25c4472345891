"""What the store does per second, engine by engine: writes, reads, watches. Run as `python -m benchmarks.store`."""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from benchmarks.report import publish
from drakit.store import MemoryStore, SQLiteStore, Store, StoreEvent
from drakit.store.journal import Journal

VALUE = b"x" * 1000
PREFIX = "/registry/resource.k8s.io/resourceclaims/default/"
CLAIMS = 5000
WATCHERS = 100

Open = Callable[[], Awaitable[Store]]
Measurement = tuple[str, str, str, str]


class Latencies:
    """Seconds that calls took."""

    def __init__(self) -> None:
        self.all: list[float] = []

    def at(self, share: float) -> float:
        return sorted(self.all)[int(share * (len(self.all) - 1))]

    def __str__(self) -> str:
        return f"median {duration(self.at(0.5))}, 99 % {duration(self.at(0.99))}"


async def create(store: Store, name: str, count: int, took: Latencies) -> None:
    for number in range(count):
        start = time.perf_counter()
        await store.create(f"{PREFIX}{name}-{number}", VALUE)
        took.all.append(time.perf_counter() - start)


async def fill(store: Store, count: int) -> None:
    await asyncio.gather(*(store.create(f"{PREFIX}claim-{number:05d}", VALUE) for number in range(count)))


async def creates(store: Store, writers: int, each: int) -> tuple[str, str]:
    took, start = Latencies(), time.perf_counter()
    await asyncio.gather(*(create(store, f"w{writer}", each, took) for writer in range(writers)))
    return per_second(writers * each, time.perf_counter() - start), str(took)


async def updates(store: Store, writers: int, each: int) -> tuple[str, str]:
    took = Latencies()

    async def update(writer: int) -> None:
        current = await store.create(f"{PREFIX}u{writer}", VALUE)
        for _ in range(each):
            start = time.perf_counter()
            current = await store.update(current.key, VALUE, expected=current.revision)
            took.all.append(time.perf_counter() - start)

    start = time.perf_counter()
    await asyncio.gather(*(update(writer) for writer in range(writers)))
    return per_second(writers * each, time.perf_counter() - start), str(took)


async def busy(store: Store, writers: int, each: int) -> tuple[str, str]:
    """Creates while the loop never rests: what a server does that is at its limit."""
    done = asyncio.Event()

    async def hog() -> None:
        while not done.is_set():
            until = time.perf_counter() + 0.0002
            while time.perf_counter() < until:
                pass
            await asyncio.sleep(0)

    hogging = asyncio.ensure_future(hog())
    measurement = await creates(store, writers, each)
    done.set()
    await hogging
    return measurement


async def timed(work: Callable[[], Awaitable[object]], rounds: int) -> float:
    start = time.perf_counter()
    for _ in range(rounds):
        await work()
    return (time.perf_counter() - start) / rounds


async def fan_out(store: Store, writes: int) -> tuple[str, str]:
    watches = [await store.watch(PREFIX, after=await store.revision()) for _ in range(WATCHERS)]
    lags = Latencies()
    sent: dict[str, float] = {}

    async def follow(number: int) -> None:
        for _ in range(writes):
            event = await anext(watches[number])
            lags.all.append(time.perf_counter() - sent[event.key])

    async def write(writer: int) -> None:
        for number in range(writes // 10):
            key = f"{PREFIX}fan-{writer}-{number}"
            sent[key] = time.perf_counter()
            await store.create(key, VALUE)

    start = time.perf_counter()
    await asyncio.gather(*(follow(number) for number in range(WATCHERS)), *(write(writer) for writer in range(10)))
    took = time.perf_counter() - start
    for watch in watches:
        await watch.close()
    return per_second(writes * WATCHERS, took), f"{lags}, from call to reader"


async def idle_watchers(store: Store, writers: int, each: int) -> tuple[str, str]:
    for number in range(1000):
        await store.watch(f"/registry/core/pods/namespace-{number}/", after=1)
    return await creates(store, writers, each)


def per_second(count: int, seconds: float) -> str:
    return f"{count / seconds:,.0f} /s"


def duration(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-4 else f"{seconds * 1e6:.2f} µs"


class Commits:
    """Counts the commits of all SQLite stores, to tell how many writes share one."""

    def __init__(self) -> None:
        self.count = 0
        append = Journal.append

        def counted(journal: Journal, events: Sequence[StoreEvent]) -> None:
            self.count += 1
            append(journal, events)

        Journal.append = counted  # type: ignore[method-assign,assignment]


async def writes(name: str, opened: Open, each: int, commits: Commits) -> list[Measurement]:
    measurements = []
    for writers in (1, 10, 100):
        async with await opened() as store:
            before = commits.count
            rate, latency = await creates(store, writers, each)
            shared = f"; {writers * each / (commits.count - before):.1f} writes per commit" if name == "sqlite" else ""
            measurements.append((f"create, {writers} at a time", name, rate, latency + shared))
    async with await opened() as store:
        measurements.append(("update, 100 at a time", name, *await updates(store, 100, each)))
    async with await opened() as store:
        measurements.append(("create, 100 at a time, 1,000 idle watches", name, *await idle_watchers(store, 100, each)))
    async with await opened() as store:
        measurements.append(("create, 100 at a time, loop never idle", name, *await busy(store, 100, each)))
    async with await opened() as store:
        measurements.append((f"events to {WATCHERS} watches, 10 writes at a time", name, *await fan_out(store, 500)))
    return measurements


async def reads(name: str, opened: Open) -> list[Measurement]:
    async with await opened() as store:
        await fill(store, CLAIMS)
        then = await store.revision()
        key = f"{PREFIX}claim-02500"
        took = {
            "get": await timed(lambda: store.get(key), 20_000),
            f"list {CLAIMS:,} claims": await timed(lambda: store.list(PREFIX), 50),
            "list a page of 500": await timed(lambda: store.list(PREFIX, limit=500, after=key), 500),
        }
        await asyncio.gather(*(store.create(f"{PREFIX}later-{n}", VALUE) for n in range(1000)))
        took["the same page 1,000 writes later"] = await timed(
            lambda: store.list(PREFIX, limit=500, after=key, revision=then), 50
        )
    return [(what, name, per_second(1, seconds), duration(seconds)) for what, seconds in took.items()]


async def reopening(path: Path) -> Measurement:
    async with await SQLiteStore.open(path) as store:
        await fill(store, 10 * CLAIMS)
    start = time.perf_counter()
    async with await SQLiteStore.open(path):
        took = time.perf_counter() - start
    return (f"open a file of {10 * CLAIMS:,} keys", "sqlite", "", duration(took))


async def measure(directory: Path) -> list[Measurement]:
    names, commits = iter(range(1000)), Commits()

    async def memory() -> Store:
        gc.collect()
        return MemoryStore()

    async def sqlite() -> Store:
        gc.collect()
        return await SQLiteStore.open(directory / f"{next(names)}.db")

    written = [*await writes("memory", memory, 200, commits), *await writes("sqlite", sqlite, 200, commits)]
    return [
        *written,
        *await reads("memory", memory),
        *await reads("sqlite", sqlite),
        await reopening(directory / "big"),
    ]


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        measurements = asyncio.run(measure(Path(directory)))
    title = "The store: values of 1,000 bytes; SQLite flushes every write to disk before it answers"
    publish("store", title, ["what", "engine", "rate", "latency"], measurements)


if __name__ == "__main__":
    main()
