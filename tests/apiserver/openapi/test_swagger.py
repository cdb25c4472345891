"""The v2 document: the same paths and kinds as v3, in the older form; and in protobuf."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from drakit.api.registry import KINDS, group_versions
from drakit.apiserver import openapi


@cache
def whole() -> dict[str, Any]:
    return openapi.swagger(group_versions())


def parts(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from parts(each)
    elif isinstance(value, list):
        for each in value:
            yield from parts(each)


def test_every_reference_leads_to_a_definition() -> None:
    found = whole()
    for part in parts(found):
        if isinstance(part.get("$ref"), str):
            assert part["$ref"].removeprefix("#/definitions/") in found["definitions"]


def test_nothing_of_v3_is_left() -> None:
    found = whole()
    assert set(found["paths"]) == {path for each in group_versions() for path in paths(each)}
    for part in parts(found):
        assert not {"oneOf", "allOf", "nullable", "requestBody", "content"} & set(part)
    definitions = found["definitions"]
    assert definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"]["type"] == "string"
    either = definitions["io.k8s.apimachinery.pkg.util.intstr.IntOrString"]
    assert (either["type"], either["format"]) == ("string", "int-or-string")


def paths(group_version: str) -> list[str]:
    group, _, version = group_version.rpartition("/")
    return list(openapi.document(group, version)["paths"])


def test_every_kind_is_found_by_its_name() -> None:
    found = [
        each for schema in whole()["definitions"].values() for each in schema.get("x-kubernetes-group-version-kind", ())
    ]
    for kind in KINDS:
        for version in kind.versions:
            assert {"group": kind.group, "kind": kind.kind, "version": version} in found


def test_old_clients_see_that_patches_can_be_tried_without_effect() -> None:
    """kubectl before 1.27 looks for `dryRun` among the parameters of a kind's patch."""
    patch = whole()["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert {"dryRun", "fieldManager", "force", "body"} <= {each["name"] for each in patch["parameters"]}
    assert patch["x-kubernetes-group-version-kind"] == {"group": "apps", "kind": "Deployment", "version": "v1"}


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a protobuf message: number, and bytes or a number."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        size = varint()
        if key & 7 == 2:
            yield key >> 3, data[at : at + size]
            at += size
        else:
            assert key & 7 == 0
            yield key >> 3, size


def named(data: bytes) -> tuple[str, bytes]:
    found = dict(fields(data))
    return found[1].decode(), found[2]


def test_protobuf_has_the_same_definitions_with_the_same_fields() -> None:
    document = dict(fields(openapi.encode_swagger(whole())))
    definitions = dict(named(value) for _, value in fields(document[9]))
    assert list(definitions) == list(whole()["definitions"])
    for name, wanted in whole()["definitions"].items():
        schema: dict[int, list[Any]] = {}
        for number, value in fields(definitions[name]):
            schema.setdefault(number, []).append(value)
        assert [each.decode() for each in schema.get(4, [])] == [each for each in [wanted.get("description")] if each]
        assert [each.decode() for each in schema.get(19, [])] == wanted.get("required", [])
        properties = dict(named(value) for each in schema.get(25, []) for _, value in fields(each))
        assert list(properties) == list(wanted.get("properties", {}))
        for field, data in properties.items():
            assert dict(fields(data)).get(1, b"").decode() == wanted["properties"][field].get("$ref", "")


def test_protobuf_has_the_operations_with_their_parameters() -> None:
    document = dict(fields(openapi.encode_swagger(whole())))
    found = dict(named(value) for number, value in fields(document[8]) if number == 2)
    assert list(found) == list(whole()["paths"])
    item = dict(fields(found["/api/v1/namespaces/{namespace}/pods/{name}"]))
    patch = list(fields(item[8]))
    assert dict(patch)[5] == b"patchCoreV1NamespacedPod"
    wanted = whole()["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
    assert len([value for number, value in patch if number == 8]) == len(wanted["parameters"])
    extensions = [named(value) for number, value in patch if number == 13]
    assert ("x-kubernetes-action", b'\x12\x07"patch"') in extensions
