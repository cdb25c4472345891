"""Protobuf in both directions: objects, lists, errors, metadata, watches; and what is chosen when."""

from __future__ import annotations

import json
from typing import Any

import pytest

from drakit.api.codec.protobuf import decode_frames, decode_protobuf, encode_protobuf
from drakit.api.exchange import EventStream, Request
from tests.apiserver.calls import CLAIMS, NAMESPACES, PODS, SLICES, Answer, Api, namespace, on_loop, serving
from tests.builders.documents import claim_document, node_document, pod_document, slice_document

PB = "application/vnd.kubernetes.protobuf"
NODES = "/api/v1/nodes"


def decoded(answer: Answer) -> dict[str, Any]:
    assert answer.response.content_type == PB
    return decode_protobuf(answer.response.content.encode())


async def protobuf(api: Api, method: str, path: str, body: Any = None, **options: Any) -> Answer:
    """Send a body as Go components do, and take protobuf back."""
    data = None if body is None else encode_protobuf(body)
    return await api.send(method, path, data, content=PB, accept=f"{PB},application/json", **options)


@on_loop
async def test_objects_that_go_components_send_are_created() -> None:
    slice_ = {**slice_document("x", "gpu-0"), "metadata": {"generateName": "n1-"}}
    node = {**node_document("n1"), "status": {"capacity": {"cpu": "4"}}}
    async with serving() as api:
        for path, body in ((SLICES, slice_), (NODES, node), (CLAIMS, claim_document("c")), (PODS, pod_document("p"))):
            answer = await protobuf(api, "POST", path, body)
            assert answer.response.code == 201, answer.body
            made = decoded(answer)
            shown = await api.get(f"{path}/{made['metadata']['name']}")
            assert made == shown.body


@on_loop
async def test_an_update_and_a_deletion_are_read() -> None:
    async with serving() as api:
        made = decoded(await protobuf(api, "POST", CLAIMS, claim_document("c")))
        made["metadata"]["labels"] = {"a": "b"}
        assert decoded(await protobuf(api, "PUT", f"{CLAIMS}/c", made))["metadata"]["labels"] == {"a": "b"}
        options = {"kind": "DeleteOptions", "apiVersion": "resource.k8s.io/v1", "preconditions": {"uid": "other"}}
        assert decoded(await protobuf(api, "DELETE", f"{CLAIMS}/c", options))["code"] == 409
        del options["preconditions"]
        assert (await protobuf(api, "DELETE", f"{CLAIMS}/c", options)).code == 200
        assert (await api.get(f"{CLAIMS}/c")).code == 404


@on_loop
async def test_lists_metadata_and_errors_say_the_same_as_in_json() -> None:
    async with serving() as api:
        for name in ("a", "b"):
            await api.create(PODS, pod_document(name))
        paths = (PODS, f"{PODS}/a", f"{PODS}/none", f"{PODS}?", NAMESPACES, "/apis/nobody.example.com/v1/things")
        for path in paths[:5]:
            assert decoded(await api.get(path, accept=PB)) == (await api.get(path)).body
        for transform in ("PartialObjectMetadataList", "PartialObjectMetadata"):
            path = PODS if transform.endswith("List") else f"{PODS}/a"
            wanted = f";as={transform};g=meta.k8s.io;v=v1"
            shown = await api.get(path, accept=f"application/json{wanted}")
            assert decoded(await api.get(path, accept=f"{PB}{wanted},application/json")) == shown.body


@on_loop
async def test_discovery_has_a_protobuf_form() -> None:
    async with serving() as api:
        for path in ("/apis", "/api/v1", "/apis/apps"):
            shown, plain = decoded(await api.get(path, accept=PB)), (await api.get(path)).body
            assert {key: shown[key] for key in plain} == plain


@on_loop
async def test_json_stays_the_default_and_the_first_choice_wins() -> None:
    async with serving() as api:
        for accept in ("", "*/*", "application/*", f"application/json,{PB}", f"{PB};q=0.5,application/json"):
            assert (await api.get(PODS, accept=accept)).response.content_type == "application/json"
        for accept in (PB, f"{PB}, */*", f"{PB},application/json", f"{PB};stream=watch"):
            assert (await api.get(PODS, accept=accept)).response.content_type == PB
        # A Table has no message: the next choice is taken, or there is none.
        table = "as=Table;v=v1;g=meta.k8s.io"
        assert (await api.get(PODS, accept=f"{PB};{table},application/json;{table}")).body["kind"] == "Table"
        assert (await api.get(PODS, accept=f"{PB};{table}")).code == 406


async def watched(api: Api, path: str, accept: str, **query: str) -> tuple[str, bytes]:
    request = Request(
        method="GET", path=path, query=(("watch", "true"), ("timeoutSeconds", "1"), *query.items()),
        headers={"accept": accept},
    )  # fmt: skip
    response = await api.server.handle(request)
    assert isinstance(response.content, EventStream)
    chunks = []
    async for chunk in response.content.lines():
        chunks.append(chunk)
        api.clock.advance(1.0)
    return response.content_type, b"".join(chunks)


@on_loop
async def test_a_watch_sends_the_events_that_it_sends_in_json() -> None:
    async with serving() as api:
        await api.create(NAMESPACES, namespace("a"))
        start = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
        for transform in ("", ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"):
            _, lines = await watched(api, NAMESPACES, f"application/json{transform}", **start)
            kind, frames = await watched(api, NAMESPACES, f"{PB}{transform}", **start)
            assert kind == f"{PB};stream=watch"
            expected = [json.loads(line) for line in lines.splitlines()]
            found = list(decode_frames(frames))
            assert [type_ for type_, _ in found] == [each["type"] for each in expected]
            assert [each for type_, each in found if type_ == "ADDED"] == [
                each["object"] for each in expected if each["type"] == "ADDED"
            ]
            mark = next(each for type_, each in found if type_ == "BOOKMARK")
            assert mark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


@on_loop
async def test_the_error_of_a_watch_is_a_frame() -> None:
    async with serving(history=2) as api:
        for name in "abcdef":
            await api.create(NAMESPACES, namespace(name))
        _, frames = await watched(api, NAMESPACES, PB, resourceVersion="1")
        ((type_, status),) = decode_frames(frames)
        assert (type_, status["kind"], status["code"]) == ("ERROR", "Status", 410)


@pytest.mark.parametrize(
    "raw",
    [
        b"k8s\x00\x0a\xff\xff\xff\xff\x0f",
        b"k8s\x00" + b"\xff" * 100_000,
        b"k8s\x00\x0a\x09\x0a\x02v1\x12\x03Pod\x12" + b"\x8c\x8d\x0b" + b"\x0a\x00" * 90_000,
        b"k8s\x00\x0a\x09\x0a\x02v1\x12\x03Pod\x12" + b"\xa0\x8d\x06" + b"\x0b" * 100_000,
        b"k8s\x00\x0a\x07\x0a\x02v1\x12\x01X\x12\x00",
        b"{}",
    ],
)  # fmt: skip
def test_hostile_bytes_are_refused(raw: bytes) -> None:
    @on_loop
    async def run() -> None:
        async with serving() as api:
            answer = await api.create(PODS, raw, content=PB)
            assert answer.code in (400, 422), answer.body

    run()
