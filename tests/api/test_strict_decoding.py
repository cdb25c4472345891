"""Unknown and duplicate fields: every one is named, with its path; strict refuses, lenient warns."""

from __future__ import annotations

import json
from typing import Any

import pytest

from drakit.api import (
    DeviceAttribute,
    DeviceClass,
    Partial,
    ResourceClaim,
    ResourceSlice,
    StrictError,
    WrongType,
    decode,
    decode_all,
    decode_plain,
)

CLAIM: dict[str, Any] = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c"}}


def claim_for_devices(**spec: Any) -> dict[str, Any]:
    return {**CLAIM, "spec": {"devices": spec}}


def problems(text: str) -> list[str]:
    with pytest.raises(StrictError) as refused:
        decode(text)
    lenient = decode(text, strict=False)
    assert lenient.problems == refused.value.problems
    return list(lenient.warnings)


def test_every_unknown_field_is_named_in_the_order_of_the_text() -> None:
    document = {
        **CLAIM,
        "zzz": 1,
        "metadata": {"name": "c", "alsoUnknown": {}},
        "spec": {
            "noSuchField": 1,
            "devices": {"requests": [{"name": "r", "exactly": {"foo": 1}}, {"bar": [{"baz": 1}]}]},
        },
    }
    assert problems(json.dumps(document)) == [
        'unknown field "metadata.alsoUnknown"',
        'unknown field "zzz"',
        'unknown field "spec.noSuchField"',
        'unknown field "spec.devices.requests[0].exactly.foo"',
        'unknown field "spec.devices.requests[1].bar"',
    ]


def test_every_duplicate_field_is_named_once_per_repetition() -> None:
    text = """{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"name": "a", "name": "b", "labels": {"x": "1", "x": "2"}},
        "spec": {"devices": {"requests": [{"name": "r", "name": "s"}]}},
        "spec": {}}"""
    assert problems(text) == [
        'duplicate field "metadata.name"',
        'duplicate field "metadata.labels.x"',
        'duplicate field "spec.devices.requests[0].name"',
        'duplicate field "spec"',
    ]


def test_the_error_reads_as_kubernetes_writes_it() -> None:
    with pytest.raises(StrictError) as refused:
        decode(json.dumps({**CLAIM, "metadata": {"alsoUnknown": 1}, "spec": {"noSuchField": 2}}))
    assert str(refused.value) == (
        'strict decoding error: unknown field "metadata.alsoUnknown", unknown field "spec.noSuchField"'
    )


def test_of_a_duplicate_the_last_value_counts_and_objects_merge() -> None:
    text = (
        '{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{"name":"a","labels":{"x":"1"}},'
        '"metadata":{"name":"b","labels":{"y":"2"}},"spec":{"extendedResourceName":"e/r"},"spec":{"selectors":[]}}'
    )
    value = decode(text, strict=False).object
    assert isinstance(value, DeviceClass)
    assert (value.metadata.name, value.metadata.labels) == ("b", {"x": "1", "y": "2"})
    assert value.spec.extended_resource_name == "e/r"


def test_of_duplicate_raw_json_and_map_values_the_last_counts_as_a_whole() -> None:
    opaque = '{"driver":"d","parameters":{"a":1},"parameters":{"b":2}}'
    device = '"attributes":{"x":{"int":1}},"attributes":{"x":{"string":"s"},"y":{"int":2}}'
    text = '{"apiVersion":"resource.k8s.io/v1","kind":"%s","metadata":{"name":"a"},"spec":{%s}}'
    owner = decode(text % ("DeviceClass", f'"config":[{{"opaque":{opaque}}}]'), strict=False).object
    assert isinstance(owner, DeviceClass)
    assert owner.spec.config[0].opaque is not None
    assert owner.spec.config[0].opaque.parameters == {"b": 2}
    found = decode(text % ("ResourceSlice", f'"devices":[{{"name":"d",{device}}}]'), strict=False).object
    assert isinstance(found, ResourceSlice)
    assert found.spec.devices[0].attributes == {"x": DeviceAttribute(string="s"), "y": DeviceAttribute(int_=2)}


def test_names_are_case_sensitive() -> None:
    assert problems(json.dumps({**CLAIM, "Spec": {}})) == ['unknown field "Spec"']


def test_raw_json_is_not_looked_into() -> None:
    text = json.dumps(
        claim_for_devices(config=[{"opaque": {"driver": "d", "parameters": {"anything": {"goes": None}}}}])
    )
    value = decode(text.replace('"goes": null', '"goes": null, "goes": 1.0')).object
    assert isinstance(value, ResourceClaim)
    opaque = value.spec.devices.config[0].opaque
    assert opaque is not None
    assert opaque.parameters == {"anything": {"goes": 1.0}}


def test_unknown_fields_of_a_partly_modelled_kind_are_found_by_its_schema() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "c", "imagee": "x", "tty": True}]}}
    assert problems(json.dumps(pod)) == ['unknown field "spec.containers[0].imagee"']


def test_fields_of_another_version_are_unknown() -> None:
    flat = {"requests": [{"name": "r", "deviceClassName": "c"}]}
    assert problems(json.dumps(claim_for_devices(**flat))) == [
        'unknown field "spec.devices.requests[0].deviceClassName"'
    ]
    nested = {**claim_for_devices(requests=[{"name": "r", "exactly": {}}]), "apiVersion": "resource.k8s.io/v1beta1"}
    assert problems(json.dumps(nested)) == ['unknown field "spec.devices.requests[0].exactly"']


def test_yaml_is_as_strict_as_json() -> None:
    text = "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: a, name: b}\nspec: {foo: 1}\n"
    assert problems(text) == ['duplicate field "metadata.name"', 'unknown field "spec.foo"']


def test_nulls_are_fields_that_are_not_there() -> None:
    value = decode_plain(
        claim_for_devices(requests=[{"name": None, "exactly": None, "firstAvailable": None}]), strict=True
    ).object
    assert isinstance(value, ResourceClaim)
    assert value.spec.devices.requests[0] == type(value.spec.devices.requests[0])()


def test_a_null_in_a_list_or_map_is_an_empty_value() -> None:
    document = {**claim_for_devices(requests=[None]), "metadata": {"labels": {"a": None}, "finalizers": [None]}}
    value = decode_plain(document, strict=True).object
    assert isinstance(value, ResourceClaim)
    assert value.metadata.labels == {"a": ""}
    assert value.metadata.finalizers == ("",)
    assert [request.name for request in value.spec.devices.requests] == [""]


def test_a_file_gives_line_and_column_of_every_problem() -> None:
    text = (
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  name: b\n---\n"
        "apiVersion: v1\nkind: Pod\nspec:\n  foo: 1\n  containers:\n  - name: c\n    bar: 2\n"
    )
    with pytest.raises(StrictError) as refused:
        decode_all(text, source="pods.yaml")
    assert [str(problem) for problem in refused.value.problems] == [
        'pods.yaml: line 5, column 3: duplicate field "metadata.name"',
        'pods.yaml: line 10, column 3: unknown field "spec.foo"',
        'pods.yaml: line 13, column 5: unknown field "spec.containers[0].bar"',
    ]


def test_a_json_file_gives_line_and_column_too() -> None:
    text = '{"apiVersion": "v1",\n "kind": "Pod",\n "spec": {"a\\"b": 1, "nodeName": "x",\n  "nodeName": "y"}}'
    with pytest.raises(StrictError) as refused:
        decode_all(text, source="pod.json")
    places = [(problem.position.line, problem.position.column) for problem in refused.value.problems]
    assert places == [(3, 11), (4, 3)]


def test_a_list_stands_for_its_items_and_paths_say_which() -> None:
    items = [{"metadata": {"name": "a"}}, {"metadata": {"nam": "b"}}]
    listed = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClassList", "items": items}
    found = decode_all(json.dumps(listed), strict=False)
    assert [each.kind.kind for each in found] == ["DeviceClass", "DeviceClass"]
    assert found[1].warnings == ('unknown field "items[1].metadata.nam"',)
    mixed = {"apiVersion": "v1", "kind": "List", "items": [CLAIM, {"apiVersion": "v1", "kind": "Pod"}]}
    assert [each.kind.kind for each in decode_all(json.dumps(mixed))] == ["ResourceClaim", "Pod"]


def test_one_bad_document_and_nothing_of_the_text_is_used() -> None:
    good = "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: a}\n"
    with pytest.raises(StrictError):
        decode_all(f"{good}---\n{good}spec: {{foo: 1}}\n")
    assert len(decode_all(f"{good}---\n{good}")) == 2


def test_the_rest_of_a_partly_modelled_object_is_kept() -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i", "livenessProbe": {"periodSeconds": 7}}], "hostPID": True},
    }
    value = decode_plain(pod, strict=True).object
    assert isinstance(value, Partial)
    assert value.view.spec.containers[0].image == "i"
    assert value.document["spec"]["containers"][0]["livenessProbe"] == {"periodSeconds": 7}
    assert value.document["spec"]["hostPID"] is True


@pytest.mark.parametrize(
    ("sent", "written"),
    [("Zm9v", "Zm9v"), ("Zm9v\nYmFy\n", "Zm9vYmFy"), ("Zm9v\r\nYg==\r\n", "Zm9vYg=="), ("", ""), ("Zm9=", "Zm8=")],
)
def test_base64_may_be_wrapped_and_is_written_in_one_line(sent: str, written: str) -> None:
    secret = decode_plain({"apiVersion": "v1", "kind": "Secret", "data": {"k": sent}}, strict=True).object
    assert isinstance(secret, Partial)
    assert secret.document["data"] == {"k": written}


@pytest.mark.parametrize(
    ("sent", "byte"), [("Zm9", 0), ("Zm9vYg", 4), ("Zm9v=", 4), ("Z m9", 1), ("Zm_-", 2), ("Zä==", 1)]
)
def test_what_is_no_base64_is_refused_with_its_place(sent: str, byte: int) -> None:
    with pytest.raises(WrongType, match=f"illegal base64 data at input byte {byte}$"):
        decode_plain({"apiVersion": "v1", "kind": "Secret", "data": {"k": sent}})
