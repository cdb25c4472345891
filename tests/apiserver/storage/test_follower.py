"""The index is current whoever writes, and never goes back."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from drakit.api.registry import Kind
from drakit.apiserver.kinds.served import known_kind
from drakit.apiserver.storage.follower import Follower
from drakit.apiserver.storage.objectstore import ObjectStore, key_of
from drakit.store import MemoryStore, Retention
from tests.apiserver.calls import on_loop

SECRET = known_kind("v1", "Secret")


class Seen:
    def __init__(self) -> None:
        self.objects: dict[str, str] = {}
        self.changes = 0

    def put(self, kind: Kind, document: dict[str, Any]) -> None:
        assert kind is SECRET
        self.objects[document["metadata"]["name"]] = document.get("type", "")
        self.changes += 1

    def remove(self, kind: Kind, namespace: str, name: str) -> None:
        assert (kind, namespace) == (SECRET, "a")
        self.objects.pop(name, None)
        self.changes += 1


def secret(name: str, kind: str = "") -> dict[str, Any]:
    return {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": name, "namespace": "a"}, "type": kind}


def encoded(name: str, kind: str = "") -> bytes:
    return msgspec.json.encode(secret(name, kind))


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@on_loop
async def test_a_write_of_this_process_is_seen_before_its_writer_goes_on() -> None:
    async with MemoryStore() as store:
        objects, seen = ObjectStore(store), Seen()
        await Follower(objects, [SECRET], seen).start()
        kept = await objects.create(SECRET, "a", secret("s", "x"))
        assert seen.objects == {"s": "x"}
        kept = await objects.update(kept, secret("s", "y"))
        assert seen.objects == {"s": "y"}
        await objects.delete(kept)
        assert seen.objects == {}
        await settle()
        assert (seen.objects, seen.changes) == ({}, 3)


@on_loop
async def test_a_write_of_another_process_is_seen_by_the_watch() -> None:
    async with MemoryStore() as store:
        objects, seen = ObjectStore(store), Seen()
        await store.create(key_of(SECRET, "a", "old"), encoded("old"))
        await Follower(objects, [SECRET], seen).start()
        assert seen.objects == {"old": ""}
        record = await store.create(key_of(SECRET, "a", "new"), encoded("new", "x"))
        await settle()
        assert seen.objects == {"old": "", "new": "x"}
        await store.delete(record.key, expected=record.revision)
        await settle()
        assert seen.objects == {"old": ""}


@on_loop
async def test_a_watch_that_comes_late_does_not_bring_back_what_is_gone() -> None:
    async with MemoryStore() as store:
        objects, seen = ObjectStore(store), Seen()
        await Follower(objects, [SECRET], seen).start()
        first = await objects.create(SECRET, "a", secret("s"))
        await objects.delete(first)  # the watch has not had a turn: it has both writes before it
        assert seen.objects == {}
        await settle()
        assert seen.objects == {}
        again = await objects.create(SECRET, "a", secret("s", "again"))
        assert seen.objects == {"s": "again"}
        await settle()
        assert seen.objects == {"s": "again"}
        assert again.revision > first.revision


@on_loop
async def test_a_follower_that_fell_behind_reads_everything_again() -> None:
    async with MemoryStore(retention=Retention(events=8)) as store:
        objects, seen = ObjectStore(store), Seen()
        await Follower(objects, [SECRET], seen).start()
        gone = await store.create(key_of(SECRET, "a", "gone"), encoded("gone"))
        await settle()
        await store.delete(gone.key, expected=gone.revision)
        # Without a turn in between: more than the buffer of the watch holds.
        loop_free = [store.create(key_of(SECRET, "a", f"s{number}"), encoded(f"s{number}")) for number in range(6000)]
        for write in loop_free:
            await write
        await settle()
        assert len(seen.objects) == 6000
        assert "gone" not in seen.objects


@on_loop
async def test_a_follower_ends_with_its_store() -> None:
    store = MemoryStore()
    follower = Follower(ObjectStore(store), [SECRET], Seen())
    await follower.start()
    await store.close()
    await settle()
    assert all(task.done() and task.exception() is None for task in follower._tasks)
