"""What is sent, and what is made of it, has a size: an object does not grow beyond its limit by any way."""

from __future__ import annotations

from typing import Any

import pytest

from drakit.api.codec.protobuf import CONTENT_TYPE as PROTOBUF
from drakit.api.text.problems import Malformed
from drakit.api.text.yamltext import MAX_EXPANDED, parse_yaml_documents
from drakit.apiserver import Settings
from drakit.apiserver.requests.bodies import MAX_ELEMENTS
from drakit.apiserver.storage.objectstore import LARGEST
from tests.apiserver.calls import CLASSES, MERGE, PODS, on_loop, serving
from tests.builders.documents import class_document, pod_document

STRATEGIC = "application/strategic-merge-patch+json"


def aliased(size: int, times: int) -> str:
    """A text of `size` bytes, and that text again behind so many aliases."""
    return f"a: &a {'x' * size}\nb: [{', '.join(['*a'] * times)}]"


def test_aliases_count_by_the_bytes_that_they_stand_for() -> None:
    assert len(parse_yaml_documents(aliased(1000, 1000))[0]["b"]) == 1000
    with pytest.raises(Malformed, match="excessive aliasing"):
        parse_yaml_documents(aliased(1_000_000, 2000))
    with pytest.raises(Malformed, match="excessive aliasing"):
        parse_yaml_documents(aliased(1_000_000, 2) + f"\nc: {'y' * MAX_EXPANDED}")


def test_text_without_aliases_is_as_long_as_it_likes() -> None:
    assert parse_yaml_documents(f"a: &a 1\nb: {'x' * MAX_EXPANDED}")


@on_loop
async def test_a_body_of_aliases_is_a_bad_request() -> None:
    async with serving() as api:
        for content in ("application/yaml", "application/apply-patch+yaml"):
            method = "POST" if content == "application/yaml" else "PATCH"
            path = CLASSES if method == "POST" else f"{CLASSES}/a"
            body = aliased(1_000_000, 2000).encode()
            assert (await api.send(method, path, body, content=content, fieldManager="x")).code == 400


def sized_pod(name: str, *sizes: int) -> dict[str, Any]:
    containers = [{"name": f"c{at}", "image": "a", "args": ["x" * size]} for at, size in enumerate(sizes)]
    return pod_document(name, {"containers": containers})


@on_loop
async def test_a_stored_object_has_a_limit_whichever_way_it_grows() -> None:
    async with serving() as api:
        refused = await api.create(PODS, sized_pod("big", LARGEST))
        assert (refused.code, refused.body["reason"]) == (413, "RequestEntityTooLarge")
        assert f"the limit is {LARGEST}" in refused.message
        assert (await api.create(PODS, sized_pod("p", 1_000_000))).code == 201
        more = {"status": {"message": "x" * 1_000_000}}
        for path, content, dry in (("p/status", MERGE, ""), ("p/status", STRATEGIC, ""), ("p/status", MERGE, "All")):
            assert (
                await api.patch(f"{PODS}/{path}", more, content=content, **({"dryRun": dry} if dry else {}))
            ).code == 413
        assert (await api.update(f"{PODS}/p/status", {**sized_pod("p", 1_000_000), **more})).code == 413
        assert "message" not in (await api.get(f"{PODS}/p")).body["status"]


@on_loop
async def test_the_limit_of_stored_objects_can_be_set() -> None:
    async with serving(Settings(largest_object=10_000)) as api:
        assert (await api.create(CLASSES, class_document("a", annotations={"a": "x" * 9_000}))).code == 201
        assert (await api.create(CLASSES, class_document("b", annotations={"a": "x" * 11_000}))).code == 413


@on_loop
async def test_a_body_has_so_many_elements_and_commas_in_texts_are_none() -> None:
    async with serving() as api:
        texts = class_document("a", annotations={"a": "," * (MAX_ELEMENTS + 1)})
        assert (await api.create(CLASSES, texts)).code == 201
        many = b'{"metadata":{"name":"b"},"x":[%b1]}' % (b"1," * (MAX_ELEMENTS + 1))
        for method, path, content in (
            ("POST", CLASSES, "application/json"),
            ("POST", CLASSES, "application/yaml"),
            ("PATCH", f"{CLASSES}/a", MERGE),
            ("PATCH", f"{CLASSES}/a", STRATEGIC),
            ("PATCH", f"{CLASSES}/a", "application/json-patch+json"),
        ):
            refused = await api.send(method, path, many, content=content)
            assert (refused.code, "elements" in refused.message) == (413, True)


@on_loop
async def test_a_message_that_comes_in_very_many_pieces_is_a_bad_request() -> None:
    async with serving() as api:
        kind = b"\x0a\x02v1\x12\x09ConfigMap"
        pieces = b"\x0a\x00" * 10_000  # metadata, again and again
        raw = b"\x12" + bytes((len(pieces) & 127 | 128, len(pieces) >> 7 & 127 | 128, len(pieces) >> 14)) + pieces
        sent = b"k8s\x00\x0a" + bytes((len(kind),)) + kind + raw
        refused = await api.send("POST", "/api/v1/namespaces/default/configmaps", sent, content=PROTOBUF)
        assert (refused.code, "pieces" in refused.message) == (400, True)
