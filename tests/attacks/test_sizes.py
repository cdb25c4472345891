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
from drakit.base.status import MOST_ERRORS
from tests.apiserver.calls import CLASSES, MERGE, PODS, on_loop, serving
from tests.builders.documents import class_document, pod_document

MAPS = "/api/v1/namespaces/default/configmaps"
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
        nested = b'{"metadata":{"name":"b"},"x":[%b1]}' % (b'{"a":{"a":{}}},' * (MAX_ELEMENTS // 3 + 1))
        lines = b"metadata: {name: b}\nx:\n" + b"- 1\n" * (MAX_ELEMENTS + 1)
        for method, path, content, sent in (
            ("POST", CLASSES, "application/json", many),
            ("POST", CLASSES, "application/json", nested),
            ("POST", CLASSES, "application/yaml", lines),
            ("PATCH", f"{CLASSES}/a", "application/apply-patch+yaml", lines),
            ("PATCH", f"{CLASSES}/a", MERGE, many),
            ("PATCH", f"{CLASSES}/a", STRATEGIC, many),
            ("PATCH", f"{CLASSES}/a", "application/json-patch+json", many),
        ):
            refused = await api.send(method, path, sent, content=content, fieldManager="x")
            assert (refused.code, "elements" in refused.message) == (413, True)


@on_loop
async def test_commas_in_yaml_are_no_elements() -> None:
    """A long text in a block, with a line per row of a table."""
    async with serving() as api:
        table = b"".join(b"    %d,a,b,c,d,e\n" % number for number in range(MAX_ELEMENTS // 4))
        sent = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  a: |\n" + table
        assert (await api.send("POST", MAPS, sent, content="application/yaml")).code == 201
        applied = await api.send("PATCH", f"{MAPS}/a", sent, content="application/apply-patch+yaml", fieldManager="x")
        assert applied.code == 200


@on_loop
async def test_a_protobuf_message_has_so_many_elements_as_well() -> None:
    async with serving() as api:
        kind = sized(1, sized(1, b"v1") + sized(2, b"ConfigMap"))
        finalizers = sized(1, b"\x72\x01f" * (MAX_ELEMENTS + 1))
        refused = await api.send("POST", MAPS, b"k8s\x00" + kind + sized(2, finalizers), content=PROTOBUF)
        assert (refused.code, "elements" in refused.message) == (413, True)


@on_loop
async def test_errors_are_told_up_to_a_thousand() -> None:
    async with serving() as api:
        wrong = pod_document("a", {"containers": [{"name": f"C{number}"} for number in range(2000)]})
        refused = await api.create(PODS, wrong)
        assert (refused.code, len(refused.body["details"]["causes"])) == (422, MOST_ERRORS)


def sized(number: int, data: bytes) -> bytes:
    """A field of a protobuf message, with its length."""
    size = len(data)
    return bytes((number << 3 | 2, size & 127 | 128, size >> 7 & 127 | 128, size >> 14 & 127 | 128, size >> 21)) + data


@on_loop
async def test_a_message_that_comes_in_very_many_pieces_is_a_bad_request() -> None:
    async with serving() as api:
        kind = sized(1, sized(1, b"v1") + sized(2, b"ConfigMap"))
        pieces = sized(2, b"\x0a\x00" * 10_000)  # metadata, again and again
        refused = await api.send("POST", MAPS, b"k8s\x00" + kind + pieces, content=PROTOBUF)
        assert (refused.code, "pieces" in refused.message) == (400, True)
