"""Leader election: never two, soon one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from drakit.base.clock import FakeClock
from drakit.base.errors import UsageError
from drakit.client import LEASES, Client, InProcess
from drakit.informers import LeaderElector, LeaseLost, Timing
from tests.client.servers import Flaky, a_server, on_loop, turns


class Candidate:
    """A replica with a clock of its own, which may be wrong and may run fast or slow."""

    def __init__(self, name: str, server: Any, *, rate: float = 1.0, year: int = 2026, seed: int = 0) -> None:
        self.name = name
        self.rate = rate
        self.clock = FakeClock(datetime(year, 1, 1, tzinfo=UTC))
        self.line = Flaky(server)
        self.registry = CollectorRegistry()
        self.terms = 0
        self.working = False
        self.elector = LeaderElector(
            Client(InProcess(self.line), clock=self.clock),
            name="test",
            namespace="default",
            identity=name,
            random=Random(seed),
            registry=self.registry,
        )
        self.task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        while True:
            try:
                await self.elector.run(self._work)
            except LeaseLost:
                continue

    async def _work(self) -> None:
        self.terms += 1
        self.working = True
        try:
            await asyncio.Event().wait()
        finally:
            self.working = False

    def figure(self, name: str) -> float | None:
        return self.registry.get_sample_value(f"leader_election_{name}", {"name": "test"})

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def pass_time(seconds: float, *candidates: Candidate, step: float = 0.25) -> None:
    """Let time go on for all, each at its own rate; check at every step that at most one leads."""
    for _ in range(round(seconds / step)):
        for each in candidates:
            each.clock.advance(step * each.rate)
        await turns(25)
        assert len(leaders(*candidates)) <= 1, leaders(*candidates)


def leaders(*candidates: Candidate) -> list[str]:
    return [each.name for each in candidates if each.working]


@asynccontextmanager
async def candidates(*options: dict[str, Any]) -> AsyncIterator[list[Candidate]]:
    async with a_server(FakeClock()) as server:
        made = [Candidate(name, server, seed=index, **each)
                for index, (name, each) in enumerate(zip("abc", options, strict=False))]  # fmt: skip
        await turns(50)
        try:
            yield made
        finally:
            for each in made:
                await each.stop()


@on_loop
async def test_one_leads_and_goes_on_leading() -> None:
    async with candidates({}, {}) as (a, b):
        await pass_time(120, a, b)
        assert (a.working, b.working) == (True, False)
        assert (a.terms, b.terms) == (1, 0)
        assert b.elector.leader == "a"


@on_loop
async def test_figures_tell_who_leads_and_how_often_it_had_to_look_at_its_lease() -> None:
    async with candidates({}, {}) as (a, b):
        await pass_time(5, a, b)
        assert (a.figure("master_status"), b.figure("master_status")) == (1.0, 0.0)
        assert (a.figure("slowpath_total"), a.elector.is_overdue) == (0.0, False)
        lease = await b.elector._client.get(LEASES, "test", namespace="default")
        await b.elector._client.patch(lease, {"metadata": {"labels": {"touched": "yes"}}})
        await pass_time(5, a, b)
        assert a.figure("slowpath_total") == 1.0
        await a.stop()
        await pass_time(20, b)
        assert (a.figure("master_status"), b.figure("master_status")) == (0.0, 1.0)
        assert not b.elector.is_overdue


@on_loop
async def test_work_that_does_not_end_with_its_lease_is_overdue() -> None:
    async with a_server(FakeClock()) as server:
        line, clock = Flaky(server), FakeClock()
        elector = LeaderElector(Client(InProcess(line), clock=clock), name="test", namespace="default", identity="a")

        async def stubborn() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.shield(ended.wait())

        ended = asyncio.Event()
        task = asyncio.ensure_future(elector.run(stubborn))
        await turns(25)
        overdue = [elector.is_overdue]
        line.down = True
        await clock.run_for(20)
        overdue.append(elector.is_overdue)
        ended.set()
        with pytest.raises(LeaseLost):
            await task
        assert [*overdue, elector.is_overdue] == [False, True, False]


@on_loop
async def test_a_leader_that_cannot_renew_stops_before_another_begins() -> None:
    async with candidates({}, {}) as (a, b):
        await pass_time(5, a, b)
        a.line.down = True
        await pass_time(7, a, b)
        assert leaders(a, b) == ["a"]
        await pass_time(4, a, b)
        assert leaders(a, b) == []  # ten seconds after a's last renewal; b waits for fifteen
        await pass_time(12, a, b)
        assert b.working
        a.line.down = False
        await pass_time(60, a, b)
        assert (a.working, b.working) == (False, True)


@on_loop
async def test_a_server_that_hangs_does_not_keep_the_leader_leading() -> None:
    async with candidates({}, {}) as (a, b):
        await pass_time(5, a, b)

        async def hang(request: object) -> Any:
            await asyncio.Event().wait()

        a.line.handle = hang  # type: ignore[method-assign]
        await pass_time(11, a, b)
        assert not a.working


@on_loop
async def test_a_lost_answer_is_no_lost_lease() -> None:
    async with candidates({}, {}) as (a, b):
        await pass_time(5, a, b)
        for _ in range(4):
            a.line.down = True
            await pass_time(5, a, b)
            a.line.down = False
            await pass_time(3, a, b)
        assert (a.working, a.terms) == (True, 1)


@on_loop
async def test_a_leader_that_stops_gives_the_lease_back() -> None:
    async with candidates({}, {}) as (a, b):
        await pass_time(5, a, b)
        await a.stop()
        lease = await b.elector._client.get(LEASES, "test", namespace="default")
        assert not lease.view.spec.holder_identity
        await pass_time(5, b)
        assert b.working
        lease = await b.elector._client.get(LEASES, "test", namespace="default")
        assert lease.view.spec.lease_transitions == 1


@on_loop
async def test_a_leader_whose_work_is_done_gives_the_lease_back() -> None:
    async with a_server(FakeClock()) as server:
        client = Client(InProcess(server), clock=FakeClock())
        elector = LeaderElector(client, name="test", namespace="default", identity="a")
        done = []

        async def work() -> None:
            assert elector.leading
            done.append(True)

        await elector.run(work)
        assert done
        assert not elector.leading
        assert not (await client.get(LEASES, "test", namespace="default")).view.spec.holder_identity

        async def fail() -> None:
            raise RuntimeError("a bug")

        with pytest.raises(RuntimeError, match="a bug"):
            await elector.run(fail)


@on_loop
async def test_a_lease_that_somebody_else_touched_is_kept_and_one_that_was_taken_is_lost() -> None:
    async with candidates({}, {}) as (a, b):
        await pass_time(5, a, b)
        client = b.elector._client
        lease = await client.get(LEASES, "test", namespace="default")
        await client.patch(lease, {"metadata": {"labels": {"touched": "yes"}}})
        await pass_time(8, a, b)
        assert (a.working, a.terms) == (True, 1)
        await client.patch_named(LEASES, "test", {"spec": {"holderIdentity": "z"}}, namespace="default")
        await pass_time(5, a, b)
        assert not a.working


@on_loop
async def test_fields_of_the_lease_that_we_do_not_know_stay() -> None:
    async with candidates({}) as (a,):
        client = a.elector._client
        lease = await client.get(LEASES, "test", namespace="default")
        await client.patch(
            lease, {"metadata": {"annotations": {"note": "mine"}}, "spec": {"strategy": "OldestEmulationVersion"}}
        )
        await pass_time(10, a)
        lease = await client.get(LEASES, "test", namespace="default")
        assert lease.document["metadata"]["annotations"] == {"note": "mine"}
        assert a.working


def test_times_that_cannot_be_safe_are_refused() -> None:
    client = Client(InProcess(Flaky(None)))  # type: ignore[arg-type]
    for timing in (Timing(renew_deadline=15), Timing(retry_period=9), Timing(lease_duration=10)):
        with pytest.raises(UsageError, match="lease duration"):
            LeaderElector(client, name="x", identity="y", timing=timing)


CUTS = st.lists(st.tuples(st.integers(1, 30), st.sampled_from("ab"), st.booleans()), min_size=1, max_size=8)


@settings(max_examples=25, deadline=None)
@given(
    cuts=CUTS,
    rates=st.tuples(st.floats(0.85, 1.2), st.floats(0.85, 1.2)),
    years=st.tuples(st.integers(2000, 2050), st.integers(2000, 2050)),
)
def test_there_are_never_two_leaders_whatever_the_clocks_say(
    cuts: list[tuple[int, str, bool]], rates: tuple[float, float], years: tuple[int, int]
) -> None:
    """Clocks of other years and of rates that differ by less than 15 to 10; lines that come and go."""

    async def play() -> None:
        async with candidates({"rate": rates[0], "year": years[0]}, {"rate": rates[1], "year": years[1]}) as (a, b):
            for seconds, who, down in cuts:
                (a if who == "a" else b).line.down = down
                await pass_time(seconds, a, b, step=0.5)
            a.line.down = b.line.down = False
            await pass_time(60, a, b, step=0.5)
            assert a.working or b.working

    asyncio.run(play())


@on_loop
async def test_a_lease_that_can_never_be_had_is_told_without_being_asked(caplog: pytest.LogCaptureFixture) -> None:
    async with a_server(FakeClock()) as server:
        clock = FakeClock()
        elector = LeaderElector(
            Client(InProcess(server), clock=clock), name="test", namespace="nowhere", identity="a", random=Random(0)
        )
        task = asyncio.ensure_future(elector.run(asyncio.Event().wait))  # type: ignore[arg-type]
        await turns(50)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        told = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
        assert told == ['lease nowhere/test: namespaces "nowhere" not found']
