"""The engines that the contract tests run over, and a way to run a coroutine as a test."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from drakit.base.clock import Clock
from drakit.store import MemoryStore, Retention, SQLiteStore, Store, StoreEvent, StoreWatch
from drakit.store.etcd import EtcdAccess, EtcdStore
from drakit.store.journalthread import JournalThread
from tests.builders.loop import on_loop as on_loop

UNBOUNDED = Retention(events=10**9, bytes=10**15, seconds=None)


@dataclass(frozen=True)
class Engine:
    name: str
    path: Path
    address: str = ""
    prefix: str = ""

    async def open(self, *, clock: Clock | None = None, retention: Retention | None = None) -> Store:
        if self.name == "memory":
            return MemoryStore(clock=clock, retention=retention)
        if self.name == "etcd":
            access = EtcdAccess(endpoints=(self.address,), prefix=self.prefix)
            return await EtcdStore.open(access, clock=clock, retention=retention)
        own_process = self.name == "sqlite-process"
        return await SQLiteStore.open(self.path, clock=clock, retention=retention, own_process=own_process)


def connection_of(store: SQLiteStore) -> sqlite3.Connection:
    """The connection of a store whose file is written by a thread of this process."""
    assert isinstance(store._journal, JournalThread)
    return store._journal._journal._connection


async def read(watch: StoreWatch, count: int) -> list[StoreEvent]:
    """The next events, as many as asked for."""
    return [await anext(watch) for _ in range(count)]


async def fill(store: Store, prefix: str, count: int) -> None:
    for number in range(count):
        await store.create(f"{prefix}{number:03d}", b"%d" % number)
