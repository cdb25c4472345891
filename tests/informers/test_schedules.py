"""Random schedules: whatever is written and whatever breaks, in the end the cache is what the server has."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from drakit.api import ResourceClaim
from drakit.base import status
from drakit.client import CLAIMS, AlreadyExists, Client, ConnectionFailed, Key, NotFound
from drakit.client.failures import failed
from drakit.client.transport.http import Http
from drakit.informers import Informers
from tests.builders.objects import claim_to_send
from tests.client.servers import on_loop, over_http, turns
from tests.informers.following import Following, Record, following

NAMES = st.sampled_from(["a", "b", "c", "d"])
WRITES = st.lists(st.tuples(st.sampled_from(["create", "create", "label", "delete"]), NAMES), max_size=6)
FAULTS = st.sampled_from(["none", "cut", "end", "expire", "down", "lose"])
PAUSES = st.sampled_from([0, 3, 40])
PHASES = st.lists(st.tuples(WRITES, PAUSES, FAULTS, WRITES, PAUSES), min_size=1, max_size=6)
EXPIRED = status.expired("too old resource version")


async def write(client: Client, action: str, name: str, count: int) -> None:
    with suppress(NotFound, AlreadyExists):
        if action == "create":
            await client.create(claim_to_send(name))
        elif action == "delete":
            await client.delete(CLAIMS, name, namespace="default")
        else:
            found = await client.get(CLAIMS, name, namespace="default")
            await client.patch(found, {"metadata": {"labels": {"n": str(count)}}})


async def break_line(made: Following, fault: str) -> None:
    """Something goes wrong. After `lose`, what is written until the line is up again shows in the next list only."""
    made.line.down = fault in ("down", "lose")
    if fault in ("cut", "down"):
        made.line.cut(ConnectionFailed("cut", sent=True))
    elif fault == "end":
        made.line.cut()
    elif fault in ("expire", "lose"):
        made.line.cut(failed(EXPIRED))
    if made.line.down:
        await turns(20)


@settings(max_examples=80, deadline=None)
@given(phases=PHASES, streaming=st.booleans(), history=st.sampled_from([2, 1000]))
def test_no_change_is_lost_and_none_is_told_twice(phases: list[Any], streaming: bool, history: int) -> None:
    async def play() -> None:
        async with following(streaming=streaming, history=history) as made:
            for count, (before, pause, fault, during, rest) in enumerate(phases):
                for action, name in before:
                    await write(made.direct, action, name, count)
                await turns(pause)
                await break_line(made, fault)
                for action, name in during:
                    await write(made.direct, action, name, count + 100)
                made.line.down = False
                made.clock.advance(0.7)
                await turns(rest)
            await made.caught_up()  # also compares what handlers were told

    asyncio.run(play())


@on_loop
async def test_the_same_over_sockets_with_a_connection_that_breaks() -> None:
    async with over_http() as client:
        assert isinstance(client.transport, Http)
        informers = Informers(client)
        informer, record = informers.of(CLAIMS), Record()
        informer.subscribe(record)
        async with informers.running():
            for index in range(30):
                await write(client, "create", f"c{index}", 0)
                if index % 10 == 5:
                    await client.transport.disconnect()
                if index % 3 == 0:
                    await write(client, "label", f"c{index}", index)
                if index % 7 == 0:
                    await write(client, "delete", f"c{index}", 0)
            wanted = {Key("default", each.metadata.name): each for each in await client.list(CLAIMS)}

            def same() -> bool:
                return _as_dict(informer.cache.all()) == wanted

            async with asyncio.timeout(20):
                while not same():
                    clock = client.clock
                    clock.advance(0.05)  # type: ignore[attr-defined]
                    await asyncio.sleep(0)
            assert record.state == wanted


def _as_dict(objects: list[ResourceClaim]) -> dict[Key, ResourceClaim]:
    return {Key("default", each.metadata.name): each for each in objects}
