"""Events are kept for an hour after their last write."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from drakit.apiserver import Settings, build_server
from drakit.base.clock import FakeClock
from drakit.store import SQLiteStore
from drakit.store.etcd import EtcdAccess, EtcdStore
from tests.apiserver.calls import Api, on_loop, serving
from tests.builders.etcd import etcd_cluster

EVENTS = "/api/v1/namespaces/default/events"
HOUR = Settings(event_ttl=3600.0)


def event(name: str) -> Any:
    involved = {"kind": "Pod", "namespace": "default", "name": "p"}
    return {"apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "involvedObject": involved}


@on_loop
async def test_an_event_ends_an_hour_after_it_was_written() -> None:
    async with serving(HOUR) as api:
        assert (await api.create(EVENTS, event("first"))).code == 201
        await api.clock.run_for(1800)
        assert (await api.create(EVENTS, event("second"))).code == 201
        await api.clock.run_for(1900)
        assert (await api.get(EVENTS)).names == ["second"]


@on_loop
async def test_a_repeat_keeps_an_event_for_another_hour() -> None:
    async with serving(HOUR) as api:
        await api.create(EVENTS, event("first"))
        await api.clock.run_for(3000)
        await api.patch(f"{EVENTS}/first", {"count": 2})
        await api.clock.run_for(3000)
        assert (await api.get(EVENTS)).names == ["first"]
        await api.clock.run_for(1000)
        assert (await api.get(EVENTS)).names == []


@on_loop
async def test_an_event_of_before_a_restart_ends_in_its_time(tmp_path: Path) -> None:
    clock = FakeClock()
    for names in (["first"], []):
        async with (
            await SQLiteStore.open(tmp_path / "store.db", clock=clock) as store,
            await build_server(store, clock=clock, settings=HOUR) as server,
        ):
            api = Api(server, clock)
            if names:
                await api.create(EVENTS, event("first"))
            else:
                await clock.run_for(1900)
                async with asyncio.timeout(60):
                    # It is being deleted: the commit takes real time, in a thread.
                    while (await api.get(EVENTS)).names:  # noqa: ASYNC110
                        await asyncio.sleep(0.01)
            assert (await api.get(EVENTS)).names == names
        clock.advance(1800)


@on_loop
async def test_without_a_length_events_are_kept() -> None:
    async with serving() as api:
        await api.create(EVENTS, event("first"))
        await api.clock.run_for(100_000)
        assert (await api.get(EVENTS)).names == ["first"]


@on_loop
async def test_on_etcd_events_end_by_their_lease_and_those_from_elsewhere_by_the_server(tmp_path: Path) -> None:
    clock = FakeClock()
    with etcd_cluster(tmp_path) as (member,):
        access = EtcdAccess(endpoints=(member.client,))
        async with await EtcdStore.open(access) as store, await build_server(store, clock=clock) as server:
            # As `drakit store copy` brings them: without a lease.
            for name in ("copied", "written-again"):
                assert (await Api(server, clock).create(EVENTS, event(name))).code == 201
        async with (
            await EtcdStore.open(access) as store,
            await EtcdStore.open(access) as other,
            await build_server(store, clock=clock, settings=Settings(event_ttl=1.0)) as server,
            await build_server(other, clock=clock, settings=HOUR) as second,
        ):
            api = Api(server, clock)
            watch = await store.watch("/registry/core/events/", after=await store.revision())
            assert (await Api(second, clock).patch(f"{EVENTS}/written-again", {"count": 2})).code == 200
            assert (await api.create(EVENTS, event("leased"))).code == 201
            gone: list[str] = []
            # The clock stands still, and yet the lease ends; the copied one needs the clock.
            while not gone:
                gone += [each.key.rpartition("/")[2] for each in await watch.take() if each.record is None]
            assert gone == ["leased"]
            await clock.run_for(2)
            while len(gone) < 2:
                gone += [each.key.rpartition("/")[2] for each in await watch.take() if each.record is None]
            assert gone == ["leased", "copied"]
            assert (await api.get(EVENTS)).names == ["written-again"]
