"""YAML is read as Kubernetes reads it, and written so that it is read back the same."""

from __future__ import annotations

import pytest

from drakit.api import decode_all, parse_documents
from drakit.api.text.jsontext import Repeated
from drakit.api.text.yamldump import dump_yaml
from drakit.api.text.yamltext import resolve


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None), ("~", None), ("null", None), ("Null", None), ("nULL", "nULL"),
        ("true", True), ("yes", True), ("on", True), ("y", True), ("n", False), ("Off", False), ("yEs", "yEs"),
        ("0", 0), ("-7", -7), ("+7", 7), ("014", 12), ("0o14", 12), ("0x1F", 31), ("0b101", 5), ("1_000", 1000),
        ("0X1F", 31), ("-0O17", -15), ("+0B1", 1),
        ("08", 8.0), ("1e3", 1000.0), ("1.5", 1.5), (".5", 0.5), ("1.", 1.0), ("-1E-2", -0.01),
        ("1:30", "1:30"), ("2024-01-01", "2024-01-01"), ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
        ("1.2.3", "1.2.3"), ("0x", "0x"), ("1Gi", "1Gi"), ("-", "-"), (".", "."), ("e3", "e3"),
    ],
)  # fmt: skip
def test_plain_words_mean_what_they_mean_to_kubernetes(text: str, value: object) -> None:
    assert resolve(text) == value
    assert type(resolve(text)) is type(value)


def test_quotes_and_tags_decide() -> None:
    text = "a: '1'\nb: \"yes\"\nc: !!str 1\nd: !!float 1\ne: !!binary Zm9v\nf: !own x\ng: ! 1\n"
    assert parse_documents(text, syntax="yaml") == [
        {"a": "1", "b": "yes", "c": "1", "d": 1.0, "e": "foo", "f": "x", "g": "1"}
    ]


def test_whole_numbers_with_a_point_or_exponent_are_integers_as_in_json() -> None:
    (document,) = parse_documents("[1.0, 1e3, -2.50e1, 1.5, 1e21, !!float 3]", syntax="yaml")
    assert document == [1, 1000, -25, 1.5, 1e21, 3]
    assert [type(each) for each in document] == [int, int, int, float, float, int]
    claim = "apiVersion: apps/v1\nkind: ReplicaSet\nspec: {replicas: 2.0}\n"
    assert decode_all(claim)[0].object.view.spec.replicas == 2  # type: ignore[union-attr]


def test_keys_are_texts() -> None:
    assert parse_documents("1: a\ntrue: b\n1.5: c\n1e3: d\n", syntax="yaml") == [
        {"1": "a", "true": "b", "1.5": "c", "1000": "d"}
    ]


def test_anchors_and_merges_are_followed() -> None:
    text = "base: &base {a: 1, b: 2}\nmore: &more {b: 3, c: 4}\nall: {<<: [*base, *more], a: 0}\none: {<<: *more}\n"
    (document,) = parse_documents(text, syntax="yaml")
    assert document["all"] == {"a": 0, "b": 2, "c": 4}
    assert document["one"] == {"b": 3, "c": 4}


def test_a_key_that_is_there_twice_is_remembered() -> None:
    (document,) = parse_documents("a: 1\na: 2\n", syntax="yaml")
    assert isinstance(document, Repeated)
    assert (document, document.pairs) == ({"a": 2}, [("a", 1), ("a", 2)])


def test_documents_follow_each_other_and_empty_ones_are_passed_over() -> None:
    assert parse_documents("---\n---\na: 1\n---\n# nothing\n---\nb: 2\n...\n") == [{"a": 1}, {"b": 2}]
    assert parse_documents('{"a": 1}\n{"b": 2}') == [{"a": 1}, {"b": 2}]


def test_text_that_begins_like_json_may_be_yaml() -> None:
    assert parse_documents("{a: 1, b: [x]}") == [{"a": 1, "b": ["x"]}]


def test_texts_that_look_like_something_else_are_quoted() -> None:
    texts = ["yes", "1", "1e3", "null", "", "<<", "~", "014", "a: b", "- x", "plain", "two\nlines\n", " edge "]
    assert parse_documents(dump_yaml({"texts": texts}), syntax="yaml") == [{"texts": texts}]
    assert dump_yaml({"a": "yes", "b": "plain", "c": "1Gi"}) == 'a: "yes"\nb: plain\nc: 1Gi\n'


def test_an_equals_sign_and_a_merge_sign_are_bare_as_values_and_safe_as_keys() -> None:
    assert dump_yaml({"a": "=", "b": "<<"}) == "a: =\nb: <<\n"
    for document in ({"a": "=", "b": ["<<"]}, {"<<": {"a": 1}}, {"=": "<<"}):
        assert parse_documents(dump_yaml(document), syntax="yaml") == [document]


def test_lines_are_written_as_a_block() -> None:
    assert dump_yaml({"expression": "a &&\nb"}) == "expression: |-\n  a &&\n  b\n"


def test_shared_parts_are_written_out() -> None:
    shared = {"a": 1}
    assert dump_yaml({"b": shared, "c": shared}) == "b:\n  a: 1\nc:\n  a: 1\n"


def test_several_documents_are_written_and_read() -> None:
    classes = [
        {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": {}}
        for name in ("a", "b")
    ]
    assert [each.object.metadata.name for each in decode_all("---\n".join(map(dump_yaml, classes)))] == ["a", "b"]  # type: ignore[union-attr]
