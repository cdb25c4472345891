"""The cache of decoded objects: one per write, bounded."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from drakit.api.objects.plain import Plain
from drakit.api.registry import Kind, find_kind
from drakit.apiserver.storage import objects as decoding
from drakit.apiserver.storage.objects import storage_form
from drakit.apiserver.storage.objectstore import (
    SUPERSEDED,
    WARM_SECONDS,
    KeyExists,
    ObjectStore,
    key_of,
    prefix_of,
)
from drakit.base.clock import FakeClock
from drakit.store import MemoryStore, Retention, SQLiteStore
from tests.apiserver.calls import on_loop
from tests.builders.documents import claim_document


def claims() -> Kind:
    kind = find_kind("resource.k8s.io/v1", "ResourceClaim")
    assert kind is not None
    return kind


def stored(name: str, **metadata: Any) -> Plain:
    return claim_document(name, namespace="default", **metadata)


@on_loop
async def test_an_object_that_is_written_over_is_forgotten_after_a_while() -> None:
    async with MemoryStore(retention=Retention(seconds=None)) as store:
        objects = ObjectStore(store)
        kept = await objects.create(claims(), "default", stored("a"))
        for number in range(SUPERSEDED + 50):
            kept = await objects.update(kept, {**kept.document, "status": {"n": number}})
        assert len(objects._cache) == SUPERSEDED + 1
        assert await objects.get(claims(), "default", "a") is kept


@on_loop
async def test_what_was_replaced_or_deleted_is_forgotten_with_the_history_that_has_it() -> None:
    clock, retention = FakeClock(), Retention(seconds=300.0)
    async with MemoryStore(clock=clock, retention=retention) as store:
        objects = ObjectStore(store)
        kept = await objects.create(claims(), "default", stored("a"))
        gone = await objects.create(claims(), "default", stored("b"))
        for number in range(20):
            kept = await objects.update(kept, {**kept.document, "status": {"n": number}})
        await objects.delete(gone)
        assert len(objects._cache) == 22
        clock.advance(301.0)
        # The first write lets history go, the next one what only that had a use for.
        kept = await objects.update(kept, {**kept.document, "status": {"n": 21}})
        kept = await objects.update(kept, {**kept.document, "status": {"n": 22}})
        assert len(objects._cache) == 3
        assert await objects.get(claims(), "default", "a") is kept


@on_loop
async def test_the_cache_has_a_bound_and_what_left_it_is_decoded_again() -> None:
    async with MemoryStore() as store:
        objects = ObjectStore(store, cached=10)
        made = [await objects.create(claims(), "default", stored(f"c{number}")) for number in range(30)]
        assert len(objects._cache) == 10
        again = await objects.get(claims(), "default", "c0")
        assert again is not made[0]
        assert again.document == made[0].document


@on_loop
async def test_an_object_that_nobody_writes_lets_go_of_what_was_decoded_and_is_the_same_as_before() -> None:
    clock = FakeClock()
    async with MemoryStore(clock=clock) as store:
        objects = ObjectStore(store, clock=clock)
        kept = await objects.create(claims(), "default", stored("a", labels={"app": "x"}))
        before = (kept.document, kept.typed, kept.owners, kept.encode("v1"), kept.line("v1", "ADDED"))
        clock.advance(WARM_SECONDS + 1)
        decoded = ("_document", "_typed", "_owners")
        assert [getattr(kept, name) is None for name in decoded] == [False, False, False]
        await objects.create(claims(), "default", stored("b"))
        assert [getattr(kept, name) is None for name in decoded] == [True, True, True]
        assert not kept._lines
        assert await objects.get(claims(), "default", "a") is kept
        assert (kept.document, kept.typed, kept.owners, kept.encode("v1"), kept.line("v1", "ADDED")) == before
        assert kept.document is not before[0]


@on_loop
async def test_bytes_are_those_of_the_store_with_the_version_put_in() -> None:
    async with MemoryStore() as store:
        objects, kind = ObjectStore(store), claims()
        kept = await objects.create(kind, "default", stored("a"))
        record = await store.get(key_of(kind, "default", "a"))
        assert record.value == storage_form(kind, kept.document)
        assert b"resourceVersion" not in record.value
        assert kept.encode("v1") == record.value.replace(
            b'"metadata":{', b'"metadata":{"resourceVersion":"%d",' % record.revision, 1
        )


@on_loop
async def test_a_value_that_is_not_in_our_form_is_read_all_the_same() -> None:
    async with MemoryStore() as store:
        objects, kind = ObjectStore(store), claims()
        await store.create(key_of(kind, "default", "a"), b'{"spec":{},"metadata":{"name":"a"}}')
        kept = await objects.get(kind, "default", "a")
        assert kept.encode("v1").startswith(b'{"kind":"ResourceClaim","apiVersion":"resource.k8s.io/v1","metadata":{')
        assert kept.name == "a"


@on_loop
async def test_a_watch_that_sees_a_durable_write_before_its_writer_has_the_document_of_the_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await SQLiteStore.open(tmp_path / "store.db") as store:
        objects = ObjectStore(store)
        events = await store.watch(prefix_of(claims()), after=await store.revision())

        def decode(_value: bytes) -> Plain:
            raise AssertionError("decoded what its writer knows")

        monkeypatch.setattr(decoding, "decode_document", decode)
        for write in (
            objects.create(claims(), "default", stored("a")),
            objects.create(claims(), "default", stored("b")),
        ):
            writing = asyncio.create_task(write)
            event = await anext(events)
            assert event.record is not None
            seen = objects.from_record(claims(), event.record)
            assert not writing.done()
            assert seen.document["metadata"]["resourceVersion"] == str(event.revision)
            assert await writing is seen
        changed = asyncio.create_task(objects.update(seen, {**seen.document, "status": {"n": 1}}))
        event = await anext(events)
        assert event.record is not None
        assert objects.from_record(claims(), event.record).document["status"] == {"n": 1}
        assert await changed is objects.from_record(claims(), event.record)
        assert not objects._underway


@on_loop
async def test_a_write_that_fails_leaves_nothing_under_way() -> None:
    async with MemoryStore() as store:
        objects = ObjectStore(store)
        await objects.create(claims(), "default", stored("a"))
        with pytest.raises(KeyExists):
            await objects.create(claims(), "default", stored("a"))
        assert not objects._underway
