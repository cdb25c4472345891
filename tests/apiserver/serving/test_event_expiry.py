"""Events are kept for an hour after their last write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from drakit.apiserver import Settings, build_server
from drakit.base.clock import FakeClock
from drakit.store import SQLiteStore
from tests.apiserver.calls import Api, on_loop, serving

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
                await clock.run_for(1900, turns=2000)
            assert (await api.get(EVENTS)).names == names
        clock.advance(1800)


@on_loop
async def test_without_a_length_events_are_kept() -> None:
    async with serving() as api:
        await api.create(EVENTS, event("first"))
        await api.clock.run_for(100_000)
        assert (await api.get(EVENTS)).names == ["first"]
