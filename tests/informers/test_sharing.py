"""Several components on one set of informers."""

from __future__ import annotations

from drakit.base.clock import FakeClock
from drakit.client import CLAIMS, Client, InProcess, Key
from drakit.informers import Informers
from tests.builders.objects import claim_to_send
from tests.client.servers import a_server, on_loop, turns, until
from tests.informers.following import Record


@on_loop
async def test_informers_follow_until_the_last_of_their_users_ends() -> None:
    clock = FakeClock()
    async with a_server(clock) as server:
        client = Client(InProcess(server), clock=clock)
        informers = Informers(client)
        informer = informers.of(CLAIMS)
        async with informers.running():
            async with informers.running():
                await client.create(claim_to_send("a"))
                await until(lambda: Key("default", "a") in informer.cache)
            await client.create(claim_to_send("b"))
            await until(lambda: Key("default", "b") in informer.cache)
        await client.create(claim_to_send("c"))
        await turns(50)
        assert Key("default", "c") not in informer.cache


@on_loop
async def test_two_users_have_one_informer_of_a_kind_and_are_told_the_same() -> None:
    clock = FakeClock()
    async with a_server(clock) as server:
        client = Client(InProcess(server), clock=clock)
        informers, first, second = Informers(client), Record(), Record()
        informers.of(CLAIMS).subscribe(first)
        async with informers.running():
            await client.create(claim_to_send("a"))
            await until(lambda: first.told == [("add", "a")])
            informers.of(CLAIMS).subscribe(second)
            async with informers.running():
                await client.delete(CLAIMS, "a", namespace="default")
                await until(lambda: len(second.told) == 2)
        assert first.told == second.told == [("add", "a"), ("delete", "a")]
