"""Random schedules: whatever is written and whatever breaks, in the end the cache is what the server has."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from drakit.api import ResourceClaim
from drakit.base import status
from drakit.client import CLAIMS, AlreadyExists, Client, ConnectionFailed, Key, NotFound
from drakit.client.failures import failed
from drakit.client.http import Http
from drakit.informers import Informers
from tests.client.servers import claim, on_loop, over_http, turns
from tests.informers.following import Record, following

NAMES = st.sampled_from(["a", "b", "c", "d"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("create"), NAMES),
        st.tuples(st.just("label"), NAMES),
        st.tuples(st.just("delete"), NAMES),
        st.tuples(st.sampled_from(["cut", "end", "expire", "lose", "down", "up", "tick", "turn"]), st.just("")),
    ),
    max_size=40,
)


async def write(client: Client, action: str, name: str, count: int) -> None:
    with suppress(NotFound, AlreadyExists):
        if action == "create":
            await client.create(claim(name))
        elif action == "delete":
            await client.delete(CLAIMS, name, namespace="default")
        else:
            found = await client.get(CLAIMS, name, namespace="default")
            await client.patch(found, {"metadata": {"labels": {"n": str(count)}}})


@settings(max_examples=120, deadline=None)
@given(steps=STEPS, streaming=st.booleans(), history=st.sampled_from([2, 1000]))
def test_no_change_is_lost_and_none_is_told_twice(steps: list[tuple[str, str]], streaming: bool, history: int) -> None:
    async def play() -> None:
        async with following(streaming=streaming, history=history) as made:
            for count, (action, name) in enumerate(steps):
                match action:
                    case "cut":
                        made.line.cut(ConnectionFailed("cut", sent=True))
                    case "end":
                        made.line.cut()
                    case "expire":
                        made.line.cut(failed(status.expired("too old resource version")))
                    case "lose":  # what is written until the line is up again shows in the next list only
                        made.line.down = True
                        made.line.cut(failed(status.expired("too old resource version")))
                        await turns(20)
                    case "down" | "up":
                        made.line.down = action == "down"
                    case "tick":
                        made.clock.advance(0.7)
                        await turns(20)
                    case "turn":
                        await turns(7)
                    case _:
                        await write(made.direct, action, name, count)
            made.line.down = False
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
