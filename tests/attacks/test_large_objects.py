"""Large but legal: worked on beside the loop, sent in parts, and forgotten by bytes."""

from __future__ import annotations

import threading
from collections.abc import MutableMapping
from typing import Any

import msgspec
import pytest

from drakit.api.codec.protobuf import CONTENT_TYPE as PROTOBUF
from drakit.api.codec.protobuf import encode_stored
from drakit.api.exchange import EventStream, Parted, Raw, Request, Response
from drakit.api.text.yamldump import dump_yaml
from drakit.apiserver import Limits, Settings, tables
from drakit.apiserver.admission.criteria.worker import LARGE
from drakit.apiserver.http import asgi
from drakit.apiserver.http.asgi import cut_warnings
from drakit.apiserver.patching import apply_patch
from drakit.apiserver.storage import objects
from drakit.apiserver.storage.objectstore import LONG, LONG_BYTES, SUPERSEDED_BYTES
from drakit.apiserver.verbs import create, patch, representation
from drakit.apiserver.verbs.write import read_sent
from drakit.base import labels
from tests.apiserver.auth.people import ALICE, BOB
from tests.apiserver.calls import CLAIMS, MERGE, PODS, Api, on_loop, serving
from tests.builders.documents import claim_document, pod_document

Plain = dict[str, Any]
MAPS = "/api/v1/namespaces/default/configmaps"
STRATEGIC = "application/strategic-merge-patch+json"


def big_pod(name: str, size: int = LARGE) -> Plain:
    return pod_document(name, {"containers": [{"name": "main", "image": "a", "args": ["x" * size]}]})


@on_loop
async def test_a_large_object_is_read_and_validated_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[str] = set()
    plain = read_sent

    def noted(*args: Any) -> Any:
        seen.add(threading.current_thread().name.rpartition("_")[0])
        return plain(*args)

    monkeypatch.setattr(create, "read_sent", noted)
    async with serving() as api:
        assert (await api.create(PODS, big_pod("small", 1))).code == 201
        assert seen == {""}
        assert (await api.create(PODS, big_pod("large"))).code == 201
        assert seen == {"", "drakit-objects"}


@on_loop
async def test_a_patch_of_a_large_object_is_applied_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[str] = set()
    plain = apply_patch

    def noted(*args: Any, **options: Any) -> Any:
        seen.add(threading.current_thread().name.rpartition("_")[0])
        return plain(*args, **options)

    monkeypatch.setattr(patch, "apply_patch", noted)
    async with serving() as api:
        await api.create(PODS, big_pod("large"))
        for content in (MERGE, STRATEGIC):
            answer = await api.patch(f"{PODS}/large", {"metadata": {"labels": {"a": content[12:15]}}}, content=content)
            assert answer.code == 200
        assert seen == {"drakit-objects"}


@on_loop
async def test_versions_that_were_replaced_are_kept_by_bytes() -> None:
    async with serving() as api:
        await api.create(PODS, big_pod("p", 1_000_000))
        for number in range(30):
            assert (await api.patch(f"{PODS}/p", {"metadata": {"labels": {"n": str(number)}}})).code == 200
        kept = api.server.context.objects
        assert kept._superseded_bytes <= SUPERSEDED_BYTES
        assert kept._long_bytes <= LONG_BYTES
        large = [each for each in kept._cache.values() if each.size >= LONG]
        assert sum(each.size for each in large) == kept._long_bytes


async def fill(api: Api, count: int) -> None:
    for number in range(count):
        body = {"metadata": {"name": f"m{number}"}, "data": {"a": "ä" * 50_000}}
        assert (await api.create(MAPS, body)).code == 201


@pytest.mark.parametrize("count", [0, 1, 2, 12])
def test_a_list_in_parts_is_the_list(count: int) -> None:
    @on_loop
    async def run() -> None:
        async with serving() as api:
            await fill(api, count)
            content = (await api.get(MAPS)).response.content
            assert isinstance(content, Parted)
            length, parts = content.parts()
            made = list(parts)
            assert b"".join(made) == content.encode()
            assert length == len(content.encode())
            assert max(map(len, made)) < 600_000

    run()


@on_loop
async def test_a_user_has_so_many_watches_and_others_have_theirs() -> None:
    async with serving(Settings(limits=Limits(watches_per_user=3))) as api:
        request = Request(method="GET", path=CLAIMS, query=(("watch", "true"),), user=ALICE)
        streams = [(await api.server.handle(request)).content for _ in range(3)]
        assert (await api.server.handle(request)).code == 429
        other = await api.server.handle(msgspec.structs.replace(request, user=BOB))
        assert other.code == 200
        assert isinstance(streams[0], EventStream)
        await streams[0].close()
        assert (await api.server.handle(request)).code == 200


def test_warnings_are_cut_as_kubernetes_cuts_them() -> None:
    assert cut_warnings(["a", "b", "a", ""]) == ["a", "b"]
    assert cut_warnings(["x" * 4096]) == ["x" * 4096]
    cut = cut_warnings([f"{number}" + "x" * 1000 for number in range(100)])
    assert len(cut) == 16
    assert {len(each) for each in cut} == {256}


@on_loop
async def test_unknown_fields_are_told_up_to_a_hundred() -> None:
    async with serving() as api:
        sent = {**claim_document("a"), **{f"unknown{number}": 1 for number in range(5000)}}
        made = await api.create(CLAIMS, sent)
        assert (made.code, len(made.response.warnings)) == (201, 100)
        refused = await api.create(CLAIMS, {**sent, "metadata": {"name": "b"}}, fieldValidation="Strict")
        assert refused.code == 400
        assert refused.message.count("unknown field") == 100


@on_loop
async def test_a_long_selector_is_read_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    plain = labels.parse

    def noted(text: str) -> labels.LabelMatcher:
        seen.append(threading.current_thread().name.rpartition("_")[0])
        return plain(text)

    monkeypatch.setattr(labels, "parse", noted)
    long = "a notin (" + ",".join(f"value-{number}" for number in range(5000)) + ")"
    async with serving() as api:
        await api.create(MAPS, {"metadata": {"name": "m", "labels": {"a": "value-5000"}}})
        for query in ("a", long):
            assert (await api.get(MAPS, labelSelector=query)).names == ["m"]
        request = Request(method="GET", path=MAPS, query=(("watch", "true"), ("labelSelector", long)), user=ALICE)
        stream = (await api.server.handle(request)).content
        assert isinstance(stream, EventStream)
        await stream.close()
    assert seen == ["", "drakit-objects", "drakit-objects"]


@on_loop
async def test_patches_of_many_elements_are_refused_or_applied_beside_the_loop() -> None:
    async with serving() as api:
        await api.create(PODS, pod_document("p"))
        test = {"op": "test", "path": "/kind", "value": "Pod"}
        many = await api.patch(f"{PODS}/p", [test] * 10_001, content="application/json-patch+json")
        assert (many.code, "10000" in many.message) == (413, True)
        env = [{"name": f"E{number}", "value": "1"} for number in range(5000)]
        added = {"spec": {"containers": [{"name": "main", "env": env}]}}
        assert (
            await api.patch(f"{PODS}/p", added, content=STRATEGIC)
        ).code == 422  # a pod's containers are as they are
        assert "env" not in (await api.get(f"{PODS}/p")).body["spec"]["containers"][0]


@on_loop
async def test_a_dry_run_of_a_large_object_is_encoded_once_and_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    plain = objects.encode_document

    def noted(document: Plain) -> bytes:
        made = plain(document)
        if len(made) > LARGE:
            seen.append(threading.current_thread().name.rpartition("_")[0])
        return made

    monkeypatch.setattr(objects, "encode_document", noted)
    monkeypatch.setattr(objects, "decode_document", None)  # nobody decodes what was encoded just now
    async with serving() as api:
        made = await api.create(PODS, big_pod("large"), dryRun="All")
        assert (made.code, made.body["metadata"]["name"]) == (201, "large")
        assert "resourceVersion" not in made.body["metadata"]
    assert seen == ["drakit-objects"]


@on_loop
async def test_a_long_page_is_sent_in_pieces() -> None:
    """A page of megabytes for each of many connections would keep the loop busy with copying."""
    sent: list[int] = []
    turns = 0

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(len(message.get("body", b"")))

    async def turn() -> None:
        nonlocal turns
        turns += 1

    await asgi._send(Response(content=Raw(b"x" * 1_000_000)), send, turn=turn)
    assert (sum(sent), max(sent) <= 256 * 1024, turns) == (1_000_000, True, 4)


@pytest.mark.parametrize(
    ("accept", "module", "name"),
    [
        ("application/yaml", representation, "dump_yaml"),
        ("application/json;as=Table;v=v1;g=meta.k8s.io", tables, "render"),
        ("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", tables, "partial_metadata"),
    ],
)
def test_long_lists_take_their_other_forms_beside_the_loop(
    accept: str, module: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[str] = set()
    plain = getattr(module, name)

    def noted(*args: Any, **options: Any) -> Any:
        seen.add(threading.current_thread().name.rpartition("_")[0])
        return plain(*args, **options)

    monkeypatch.setattr(module, name, noted)

    @on_loop
    async def run() -> None:
        async with serving() as api:
            await api.create(MAPS, {"metadata": {"name": "m"}})
            few = await api.get(MAPS, accept=accept)
            assert (few.code, seen) == (200, {""})
            for number in range(513):
                await api.create(MAPS, {"metadata": {"name": f"m{number}"}})
            many = await api.get(MAPS, accept=accept)
            assert (many.code, seen) == (200, {"", "drakit-objects"})

    run()


@on_loop
async def test_a_large_object_becomes_yaml_and_protobuf_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def noting(plain: Any) -> Any:
        def noted(*args: Any) -> Any:
            seen.append(threading.current_thread().name.rpartition("_")[0])
            return plain(*args)

        return noted

    monkeypatch.setattr(representation, "dump_yaml", noting(dump_yaml))
    monkeypatch.setattr(objects, "encode_stored", noting(encode_stored))
    async with serving() as api:
        await api.create(PODS, big_pod("large"))
        assert (await api.get(f"{PODS}/large", accept="application/yaml")).code == 200
        assert (await api.get(f"{PODS}/large", accept=PROTOBUF)).code == 200
    assert seen == ["drakit-objects", "drakit-objects"]
