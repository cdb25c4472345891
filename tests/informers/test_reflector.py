"""Reflectors: nothing lost, nothing twice, whatever the server and the line do."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from itertools import pairwise
from random import Random

import pytest

from drakit.api import ResourceClaim
from drakit.api.exchange import EventStream, Request, Response, WatchEvent
from drakit.apiserver import Settings
from drakit.apiserver.auth.identities import node_agent
from drakit.base import status
from drakit.base.clock import FakeClock
from drakit.client import CLAIMS, PODS, Client, ConnectionFailed, InProcess, NotFound
from drakit.client.failures import failed
from drakit.informers import Informer, ListScope
from tests.builders.documents import pod_document
from tests.builders.objects import claim_to_send
from tests.client.servers import Flaky, a_server, names, on_loop, turns, until
from tests.informers.following import Following, following

BOTH = pytest.mark.parametrize("streaming", [True, False], ids=["streaming list", "list and watch"])
BROKEN = ConnectionFailed("cut in the middle", sent=True)


async def populate(made: Following, count: int = 3) -> None:
    for index in range(count):
        await made.direct.create(claim_to_send(f"c{index}"))


@BOTH
@on_loop
async def test_what_is_there_is_told_and_then_what_happens(streaming: bool) -> None:
    async with following(streaming=streaming) as made:
        assert not made.informer.has_synced
        await populate(made)
        await made.informer.wait_synced()
        await made.caught_up()
        first = made.informer.cache.named("c0", "default")
        assert first is not None
        await made.direct.patch(first, {"metadata": {"labels": {"a": "b"}}})
        await made.direct.delete(CLAIMS, "c1", namespace="default")
        await made.caught_up()
        assert made.record.told[-2:] == [("update", "c0"), ("delete", "c1")]
        assert sorted(made.record.told[:3]) == [("add", "c0"), ("add", "c1"), ("add", "c2")]


@on_loop
async def test_a_streaming_list_is_one_request() -> None:
    async with following() as made:
        await made.informer.wait_synced()
        asked = [request for request in made.line.requests if request.path.endswith("/resourceclaims")]
        assert [("sendInitialEvents", "true") in request.query for request in asked] == [True]


@on_loop
async def test_a_server_without_streaming_lists_is_listed() -> None:
    async with following() as made:
        made.line.refuse = lambda request: ("sendInitialEvents", "true") in request.query
        await populate(made)
        await made.caught_up()
        assert len(made.informer.cache) == 3


@on_loop
async def test_a_server_that_fails_in_the_middle_of_a_streaming_list_is_listed() -> None:
    """As one does whose etcd is too old for it."""
    async with following() as made:
        words = "the required storage feature RequestWatchProgress is disabled"
        made.line.answers.append(failed(status.failure(500, "InternalError", words)))
        await populate(made)
        await made.caught_up()
        assert len(made.informer.cache) == 3
        asked = [request for request in made.line.requests if request.path.endswith("/resourceclaims")]
        assert ("sendInitialEvents", "true") not in asked[-1].query


class ErrorAtOnce(EventStream):
    """What a server on an older etcd answers to a streaming list: 200, and in it an ERROR."""

    def lines(self) -> AsyncIterator[bytes]:
        raise AssertionError("read as events")

    async def events(self) -> AsyncIterator[WatchEvent]:
        said = status.failure(500, "InternalError", "required storage feature RequestWatchProgress is disabled")
        yield WatchEvent("ERROR", None, status=said)

    async def close(self) -> None:
        return


@on_loop
async def test_an_error_inside_a_streaming_list_leads_to_a_list_at_once_and_from_then_on() -> None:
    async with following() as made:
        asked = 0
        handle = made.line.handle

        async def on_old_etcd(request: Request) -> Response:
            nonlocal asked
            if ("sendInitialEvents", "true") in request.query:
                asked += 1
                return Response(content=ErrorAtOnce())
            return await handle(request)

        made.line.handle = on_old_etcd  # type: ignore[method-assign]
        await populate(made)
        await until(lambda: len(made.informer.cache) == 3)  # no time went by
        made.line.cut(BROKEN)
        await made.caught_up()
        assert asked == 1


@BOTH
@pytest.mark.parametrize("error", [BROKEN, None], ids=["in the middle", "by the server"])
@on_loop
async def test_a_watch_that_ends_is_taken_up_where_it_ended(streaming: bool, error: Exception | None) -> None:
    async with following(streaming=streaming) as made:
        await populate(made)
        await made.caught_up()
        for index in range(3):
            made.line.cut(error)
            await turns()
            await made.direct.create(claim_to_send(f"d{index}"))
            await made.caught_up()
        assert [told for told in made.record.told if told[1].startswith("d")] == [("add", f"d{i}") for i in range(3)]
        again = made.line.watches[1 if streaming else 2 :]
        assert again
        assert all(request.parameter("resourceVersion") for request in again)
        assert not any(request.parameters("sendInitialEvents") for request in again)


@BOTH
@on_loop
async def test_after_a_gap_without_history_everything_is_read_anew(streaming: bool) -> None:
    async with following(streaming=streaming, history=2) as made:
        await populate(made)
        await made.caught_up()
        made.line.down = True
        made.line.cut(BROKEN)
        await turns()
        await made.direct.delete(CLAIMS, "c1", namespace="default")
        first = await made.direct.get(CLAIMS, "c0", namespace="default")
        for index in range(5):
            first = await made.direct.patch(first, {"metadata": {"labels": {"n": str(index)}}})
        made.line.down = False
        await made.caught_up()
        assert ("delete", "c1") in made.record.told
        assert made.record.told.count(("update", "c0")) == 1  # five changes went by unseen, the last one counts


@BOTH
@on_loop
async def test_a_410_in_the_middle_of_a_watch_is_a_new_list(streaming: bool) -> None:
    async with following(streaming=streaming) as made:
        await populate(made)
        await made.caught_up()
        before = list(made.record.told)
        made.line.cut(failed(status.expired("too old resource version: 1 (7)")))
        await made.direct.create(claim_to_send("new"))
        await made.caught_up()
        assert made.record.told == [*before, ("add", "new")]  # what had not changed was not told again


@on_loop
async def test_a_recreated_object_is_an_update_to_those_who_missed_the_deletion() -> None:
    async with following(history=1) as made:
        await populate(made, 1)
        await made.caught_up()
        made.line.down = True
        made.line.cut(BROKEN)
        await turns()
        old = made.informer.cache.named("c0", "default")
        await made.direct.delete(CLAIMS, "c0", namespace="default")
        await made.direct.create(claim_to_send("c0"))
        for index in range(3):
            await made.direct.create(claim_to_send(f"filler-{index}"))
        made.line.down = False
        await made.caught_up()
        new = made.informer.cache.named("c0", "default")
        assert old is not None
        assert new is not None
        assert old.metadata.uid != new.metadata.uid


@BOTH
@on_loop
async def test_a_server_that_comes_back_with_nothing_is_believed(streaming: bool) -> None:
    async with following(streaming=streaming) as made:
        await populate(made, 5)
        await made.caught_up()
        made.line.down = True
        made.line.cut(BROKEN)
        await turns()
        async with a_server(made.clock) as fresh:
            made.line.server = fresh
            made.line.down = False
            await until_empty(made)
            await made.informers.stop()
        assert made.record.state == {}


async def until_empty(made: Following) -> None:
    for _ in range(100):
        await turns(100)
        if not len(made.informer.cache):
            return
        made.clock.advance(1)
    raise AssertionError("the cache holds what the server has forgotten")


@on_loop
async def test_a_server_that_is_away_is_asked_less_and_less_often() -> None:
    async with following() as made:
        made.line.down = True
        await turns()
        times = []
        for _ in range(600):
            before = len(made.line.requests)
            made.clock.advance(1.0)
            await turns(5)
            if len(made.line.requests) > before:
                times.append(made.clock.monotonic())
        gaps = [after - before for before, after in pairwise(times)]
        assert max(gaps) <= 61
        assert gaps[-1] >= 30
        assert len(times) < 40


@on_loop
async def test_a_server_that_hangs_up_at_once_is_not_pestered() -> None:
    async with following(streaming=False) as made:
        await made.informer.wait_synced()
        await turns()
        before = len(made.line.requests)
        for _ in range(50):
            made.line.cut()
            await turns(20)
        assert len(made.line.requests) - before <= 3  # until the clock moves


@on_loop
async def test_a_handler_that_fails_does_not_keep_others_from_hearing(caplog: pytest.LogCaptureFixture) -> None:
    async with following() as made:

        def broken(old: object, new: object) -> None:
            raise RuntimeError("a bug")

        made.informer.subscribe(broken)
        heard: list[str] = []
        made.informer.on(add=lambda obj: heard.append(obj.metadata.name))
        await populate(made, 1)
        await made.caught_up()
        assert heard == ["c0"]
        assert [record.levelno for record in caplog.records] == [logging.ERROR]
        assert "default/c0" in caplog.text


@on_loop
async def test_a_late_handler_is_told_what_is_there_and_may_leave() -> None:
    async with following() as made:
        await populate(made, 2)
        await made.caught_up()
        heard: list[tuple[str, str]] = []
        leave = made.informer.on(
            add=lambda obj: heard.append(("add", obj.metadata.name)),
            update=lambda _, obj: heard.append(("update", obj.metadata.name)),
            delete=lambda obj: heard.append(("delete", obj.metadata.name)),
        )
        assert heard == [("add", "c0"), ("add", "c1")]
        await made.direct.delete(CLAIMS, "c0", namespace="default")
        await made.caught_up()
        leave()
        await made.direct.delete(CLAIMS, "c1", namespace="default")
        await made.caught_up()
        assert heard[2:] == [("delete", "c0")]


@on_loop
async def test_all_components_share_one_reflector_and_one_object() -> None:
    async with following() as made:
        assert made.informers.of(CLAIMS) is made.informer
        part = made.informers.of(CLAIMS, ListScope(labels="team=x"))
        assert part is not made.informer
        await made.direct.create(claim_to_send("mine", team="x"))
        await made.direct.create(claim_to_send("other"))
        await made.caught_up()
        await until(lambda: len(part.cache) == 1)
        assert names(part.cache.all()) == ["mine"]
        assert part.cache.named("mine", "default") is made.informer.cache.named("mine", "default")
        assert len(made.line.watches) == 2


@on_loop
async def test_bookmarks_move_the_place_to_take_up_from() -> None:
    async with following() as made:
        await populate(made, 1)
        await made.caught_up()
        for index in range(5):  # something else happens on the server
            await made.direct.create(
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"m{index}", "namespace": "default"}}
            )
        before = int(made.informer.reflector.version)
        await made.clock.run_for(61)
        assert int(made.informer.reflector.version) >= before + 5


@on_loop
async def test_a_stopped_informer_holds_no_watch() -> None:
    async with following() as made:
        await made.informer.wait_synced()
        await made.informers.stop()
        await made.direct.create(claim_to_send("late"))
        await turns()
        assert made.informer.cache.named("late", "default") is None
        made.informers.start()
        await made.caught_up()
        assert names(made.informer.cache.all()) == ["late"]


@on_loop
async def test_keys_of_related_objects_are_enqueued_for_old_and_new() -> None:
    async with following() as made:
        queued: list[object] = []
        made.informer.enqueue(queued.append, keys=lambda obj: obj.metadata.labels.values())
        made.informer.enqueue(queued.append)
        first = await made.direct.create(claim_to_send("c", owner="a"))
        await made.caught_up()
        await made.direct.patch(first, {"metadata": {"labels": {"owner": "b"}}})
        await made.caught_up()
        assert [str(each) for each in queued] == ["a", "default/c", "a", "b", "default/c"]


@on_loop
async def test_a_deleted_object_is_told_as_it_was_at_last() -> None:
    async with following() as made:
        gone: list[ResourceClaim] = []
        made.informer.on(delete=gone.append)
        first = await made.direct.create(claim_to_send("c"))
        await made.caught_up()
        await made.direct.delete(CLAIMS, "c", namespace="default")
        await until(lambda: bool(gone))
        assert int(gone[0].metadata.resource_version) > int(first.metadata.resource_version)
        with pytest.raises(NotFound):
            await made.direct.get(CLAIMS, "c", namespace="default")


@on_loop
async def test_after_a_break_a_node_asks_for_its_own_pods_and_follows_them_again() -> None:
    """A node may list the pods of its own name only: a question about all pods would be refused for ever."""
    clock = FakeClock()
    async with a_server(clock, Settings(random=Random(7), modes=("Node", "RBAC"))) as server:
        direct, line = Client(InProcess(server), clock=clock), Flaky(server)
        mine = ListScope(fields="spec.nodeName=node-1")
        client = Client(InProcess(line, node_agent("node-1")), clock=clock)
        informer = Informer(client, PODS, scope=mine, clock=clock, random=Random(1))
        task = asyncio.create_task(informer.run())
        await informer.wait_synced()
        line.cut(BROKEN)
        await turns()
        await direct.create(pod_document("new", {"nodeName": "node-1", "containers": [{"name": "c", "image": "i"}]}))
        await clock.run_for(5.0, turns=200)
        assert [each.view.metadata.name for each in informer.cache] == ["new"]
        task.cancel()
