"""The engines that the contract tests run over, and a way to run a coroutine as a test."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec

from drakit.base.clock import Clock
from drakit.store import MemoryStore, Retention, SQLiteStore, Store, StoreEvent, StoreWatch

P = ParamSpec("P")

UNBOUNDED = Retention(events=10**9, bytes=10**15, seconds=None)


@dataclass(frozen=True)
class Engine:
    name: str
    path: Path

    async def open(self, *, clock: Clock | None = None, retention: Retention | None = None) -> Store:
        if self.name == "memory":
            return MemoryStore(clock=clock, retention=retention)
        return await SQLiteStore.open(self.path, clock=clock, retention=retention)


def on_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


async def read(watch: StoreWatch, count: int) -> list[StoreEvent]:
    """The next events, as many as asked for."""
    return [await anext(watch) for _ in range(count)]


async def fill(store: Store, prefix: str, count: int) -> None:
    for number in range(count):
        await store.create(f"{prefix}{number:03d}", b"%d" % number)
