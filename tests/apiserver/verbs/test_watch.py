"""Watches: transitions of a selection, bookmarks, streaming lists, ends."""

from __future__ import annotations

import asyncio
import json
from unittest.mock import patch

from drakit.api.exchange import EventStream, Request
from drakit.apiserver.storage import objects
from drakit.apiserver.verbs.watch import ObjectStream
from drakit.store.contract import DEFAULT_BUFFER
from tests.apiserver.calls import ALL_CLAIMS, CLAIMS, PODS, TABLE, Api, on_loop, serving, take, told
from tests.builders.documents import claim_document, pod_document


async def revision(api: Api) -> str:
    return (await api.get(CLAIMS)).version


@on_loop
async def test_a_watch_tells_what_happens_after_its_revision() -> None:
    async with serving() as api:
        await api.create(CLAIMS, claim_document("before"))
        stream = await api.watch(CLAIMS, resourceVersion=await revision(api))
        await api.create(CLAIMS, claim_document("a"))
        await api.patch(f"{CLAIMS}/a", {"metadata": {"labels": {"x": "y"}}})
        await api.create(PODS, pod_document("other-kind"))
        gone = await api.delete(f"{CLAIMS}/a")
        events = await take(stream.events(), 3)
        assert told(events) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
        assert events[2].object is not None
        assert events[2].resource_version == gone.version
        await stream.close()


@on_loop
async def test_a_watch_without_a_revision_begins_with_what_there_is() -> None:
    async with serving() as api:
        for name in ("a", "b"):
            await api.create(CLAIMS, claim_document(name))
        for start in ({}, {"resourceVersion": "0"}):
            stream = await api.watch(CLAIMS, **start)
            assert told(await take(stream.events(), 2)) == [("ADDED", "a"), ("ADDED", "b")]
            await stream.close()


@on_loop
async def test_what_enters_a_selection_is_added_and_what_leaves_it_is_deleted() -> None:
    async with serving() as api:
        await api.create(CLAIMS, claim_document("a", labels={"team": "red"}))
        stream = await api.watch(CLAIMS, labelSelector="team=red", resourceVersion=await revision(api))
        events = stream.events()
        left = await api.patch(f"{CLAIMS}/a", {"metadata": {"labels": {"team": "blue"}}})
        await api.patch(f"{CLAIMS}/a", {"metadata": {"labels": {"team": "green"}}})
        await api.patch(f"{CLAIMS}/a", {"metadata": {"labels": {"team": "red"}}})
        seen = await take(events, 2)
        assert told(seen) == [("DELETED", "a"), ("ADDED", "a")]
        assert seen[0].object is not None
        assert seen[0].object.document["metadata"]["labels"] == {"team": "red"}
        assert seen[0].resource_version == left.version
        await stream.close()


@on_loop
async def test_a_watch_of_one_name_sees_no_other_that_begins_like_it() -> None:
    async with serving() as api:
        start = await revision(api)
        stream = await api.watch(CLAIMS, fieldSelector="metadata.name=a", resourceVersion=start)
        for name in ("a", "ab"):
            await api.create(CLAIMS, claim_document(name))
        await api.delete(f"{CLAIMS}/ab")
        await api.delete(f"{CLAIMS}/a")
        assert told(await take(stream.events(), 2)) == [("ADDED", "a"), ("DELETED", "a")]
        await stream.close()


@on_loop
async def test_a_streaming_list_ends_with_a_bookmark_that_says_so() -> None:
    async with serving() as api:
        await api.create(CLAIMS, claim_document("a"))
        options = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
        stream = await api.watch(CLAIMS, **options)
        lines = stream.lines()
        first, mark = json.loads(await anext(lines)), json.loads(await anext(lines))
        assert first["type"] == "ADDED"
        assert mark["type"] == "BOOKMARK"
        assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert mark["object"]["metadata"]["resourceVersion"] == await revision(api)
        await api.create(CLAIMS, claim_document("b"))
        assert json.loads(await anext(lines))["object"]["metadata"]["name"] == "b"
        await stream.close()


@on_loop
async def test_an_idle_watch_gets_a_bookmark_a_minute_and_ends_in_time() -> None:
    async with serving() as api:
        stream = await api.watch(
            CLAIMS, resourceVersion=await revision(api), allowWatchBookmarks="true", timeoutSeconds="100"
        )
        reading = asyncio.ensure_future(_all(stream))
        await api.create(PODS, pod_document("elsewhere"))
        await api.clock.run_for(120)
        events = [json.loads(line) for line in await reading]
        assert [event["type"] for event in events] == ["BOOKMARK", "BOOKMARK"]
        assert events[0]["object"]["metadata"]["resourceVersion"] == await revision(api)


@on_loop
async def test_an_alarm_that_comes_late_does_not_end_the_task_of_the_reader() -> None:
    async with serving() as api:
        stream = await api.watch(CLAIMS, resourceVersion=await revision(api), allowWatchBookmarks="true")
        assert isinstance(stream, ObjectStream)
        reading = asyncio.create_task(take(stream.events(), 1))
        for _ in range(20):
            await asyncio.sleep(0)
        assert stream._reader is not None
        late: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        late.set_result(None)
        # Two alarms in one turn of the loop: of a read that saw its alarm by itself, and of the next one.
        stream._ring(late)
        stream._ring(late)
        await api.create(CLAIMS, claim_document("a"))
        assert told(await reading) == [("ADDED", "a")]
        await stream.close()


@on_loop
async def test_without_bookmarks_an_idle_watch_says_nothing_until_its_end() -> None:
    async with serving() as api:
        stream = await api.watch(CLAIMS, resourceVersion=await revision(api), timeoutSeconds="100")
        reading = asyncio.ensure_future(_all(stream))
        await api.clock.run_for(99)
        assert not reading.done()
        await api.clock.run_for(1)
        assert await reading == []


@on_loop
async def test_a_watch_with_less_than_no_time_is_over() -> None:
    async with serving() as api:
        stream = await api.watch(CLAIMS, resourceVersion="0", timeoutSeconds="-1")
        assert [event async for event in stream.events()] == []


@on_loop
async def test_a_revision_that_is_forgotten_is_an_error_event() -> None:
    async with serving(history=3) as api:
        old = await revision(api)
        for name in "abcdefgh":
            await api.create(CLAIMS, claim_document(name))
        for start in (old, "1"):
            stream = await api.watch(CLAIMS, resourceVersion=start)
            (event,) = [json.loads(line) for line in await _all(stream)]
            assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")


@on_loop
async def test_a_revision_from_the_future_is_waited_for_and_a_list_of_it_is_an_error() -> None:
    async with serving() as api:
        future = str(int(await revision(api)) + 2)
        stream = await api.watch(CLAIMS, resourceVersion=future)
        for name in ("one", "two", "three"):
            await api.create(CLAIMS, claim_document(name))
        assert told(await take(stream.events(), 1)) == [("ADDED", "three")]
        await stream.close()
        options = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        listing = await api.watch(CLAIMS, resourceVersion="99999", **options)
        (event,) = [json.loads(line) for line in await _all(listing)]
        assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 504, "Timeout")


@on_loop
async def test_a_reader_that_is_too_slow_is_dropped_and_nobody_waits_for_it() -> None:
    async with serving() as api:
        store = api.server.context.objects.store
        stream = await api.watch(CLAIMS, resourceVersion=await revision(api))
        for number in range(DEFAULT_BUFFER + 1):
            await store.create(f"/registry/resource.k8s.io/resourceclaims/default/c{number}", b"{}")
        assert (await store.stats()).watchers == 0
        assert await _all(stream) == []


@on_loop
async def test_an_event_is_encoded_once_for_all_who_watch() -> None:
    async with serving() as api:
        start = await revision(api)
        streams = [(await api.watch(CLAIMS, resourceVersion=start)) for _ in range(20)]
        await api.create(CLAIMS, claim_document("a"))
        lines = [await anext(stream.lines()) for stream in streams]
        assert all(line is lines[0] for line in lines)
        for stream in streams:
            await stream.close()


@on_loop
async def test_an_object_is_decoded_once_for_all_who_read() -> None:
    async with serving() as api:
        await api.create(CLAIMS, claim_document("a"))
        with patch.object(objects, "decode_document", side_effect=AssertionError("decoded again")):
            for _ in range(3):
                assert (await api.get(CLAIMS, labelSelector="!x")).names == ["a"]
                assert (await api.get(f"{CLAIMS}/a")).code == 200


@on_loop
async def test_a_watch_in_another_version_and_over_all_namespaces() -> None:
    async with serving() as api:
        stream = await api.watch(ALL_CLAIMS.replace("/v1/", "/v1beta1/"), resourceVersion=await revision(api))
        await api.create(CLAIMS, claim_document("a"))
        event = json.loads(await anext(stream.lines()))
        assert event["object"]["apiVersion"] == "resource.k8s.io/v1beta1"
        assert "exactly" not in event["object"]["spec"]["devices"]["requests"][0]
        await stream.close()


@on_loop
async def test_the_first_table_of_a_watch_has_the_columns() -> None:
    async with serving() as api:
        for name in ("a", "b"):
            await api.create(CLAIMS, claim_document(name))
        request = Request(method="GET", path=CLAIMS, query=(("watch", "1"),), headers={"accept": TABLE})
        content = (await api.server.handle(request)).content
        assert isinstance(content, EventStream)
        events = [json.loads(line) for line in (await anext(content.lines())).splitlines()]
        assert [event["object"]["kind"] for event in events] == ["Table", "Table"]
        assert events[0]["object"]["columnDefinitions"]
        assert events[1]["object"]["columnDefinitions"] is None
        await content.close()


@on_loop
async def test_a_bookmark_has_the_kind_that_the_client_asked_for() -> None:
    options = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    wanted = {
        TABLE: "Table",
        "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io": "PartialObjectMetadata",
        "application/json": "ResourceClaim",
    }
    async with serving() as api:
        for accept, kind in wanted.items():
            query = (("watch", "1"), *options.items())
            request = Request(method="GET", path=CLAIMS, query=query, headers={"accept": accept})
            content = (await api.server.handle(request)).content
            assert isinstance(content, EventStream)
            mark = json.loads(await anext(content.lines()))
            assert (mark["type"], mark["object"]["kind"]) == ("BOOKMARK", kind)
            assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
            await content.close()


@on_loop
async def test_the_old_watch_path_still_watches() -> None:
    async with serving() as api:
        await api.create(CLAIMS, claim_document("a"))
        request = Request(method="GET", path="/apis/resource.k8s.io/v1/watch/namespaces/default/resourceclaims/a")
        content = (await api.server.handle(request)).content
        assert isinstance(content, EventStream)
        assert told(await take(content.events(), 1)) == [("ADDED", "a")]
        await content.close()


@on_loop
async def test_closing_a_watch_leaves_nothing_behind() -> None:
    async with serving() as api:
        store = api.server.context.objects.store
        streams = [await api.watch(CLAIMS) for _ in range(50)]
        assert (await store.stats()).watchers == 50
        for stream in streams:
            await stream.close()
        assert (await store.stats()).watchers == 0
        page = (await api.get("/metrics")).body
        assert (
            'apiserver_longrunning_requests{group="resource.k8s.io",resource="resourceclaims",version="v1"} 0.0' in page
        )


async def _all(stream: EventStream) -> list[bytes]:
    return [line async for line in stream.lines()]
