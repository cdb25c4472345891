"""Large but legal: worked on beside the loop, sent in parts, and forgotten by bytes."""

from __future__ import annotations

import threading
from typing import Any

import msgspec
import pytest

from drakit.api.exchange import EventStream, Parted, Request
from drakit.apiserver import Limits, Settings
from drakit.apiserver.admission.criteria.worker import LARGE
from drakit.apiserver.http.asgi import cut_warnings
from drakit.apiserver.patching import apply_patch
from drakit.apiserver.storage.objectstore import LONG, LONG_BYTES, SUPERSEDED_BYTES
from drakit.apiserver.verbs import create, patch
from drakit.apiserver.verbs.write import read_object
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
    plain = read_object

    def noted(*args: Any) -> Any:
        seen.add(threading.current_thread().name.rpartition("_")[0])
        return plain(*args)

    monkeypatch.setattr(create, "read_object", noted)
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
        objects = api.server.context.objects
        assert objects._superseded_bytes <= SUPERSEDED_BYTES
        assert objects._long_bytes <= LONG_BYTES
        large = [each for each in objects._cache.values() if each.size >= LONG]
        assert sum(each.size for each in large) == objects._long_bytes


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
