"""Text that is no object: an error that says where and what was expected, quickly, and no crash."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from drakit.api import Malformed, NotAnObject, WrongType, decode, decode_all, decode_file, encode, parse_documents
from drakit.api.text.jsontext import parse_json
from drakit.base.errors import DecodeError

HEAD = '"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice"'
QUICKLY = 2.0  # seconds; every one of these takes a fraction of it


@pytest.mark.parametrize(
    ("text", "line", "column", "expected"),
    [
        ('{"kind": ', 1, 10, "unexpected end of JSON input: expected a value"),
        ('{"kind": "Pod"\n "a": 1}', 2, 2, "expected ',' or the end of the list or object"),
        ('{"kind" "Pod"}', 1, 9, "expected ':' after the key"),
        ("{\n  kind: 1}", 2, 3, "expected a key in double quotes"),
        ('{"kind": "Pod', 1, 10, "unexpected end of JSON input: expected a closing double quote for the string"),
        ('{"a": tru}', 1, 7, "expected a value"),
        ('{"a": 1} x', 1, 10, "expected a value"),
        ('{"a": "\\q"}', 1, 8, "invalid \\escape"),
    ],
)
def test_json_errors_say_where_and_what_was_expected(text: str, line: int, column: int, expected: str) -> None:
    with pytest.raises(Malformed) as error:
        parse_documents(text, syntax="json", source="f.json")
    position = error.value.position
    assert (position.source, position.line, position.column) == ("f.json", line, column)
    assert error.value.expected.lower().startswith(expected.lower())
    assert str(error.value).startswith(f"f.json: line {line}, column {column}: ")


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("a: [1", 2, "while parsing a flow sequence: expected ',' or ']'"),
        ("a: b: c", 1, "mapping values are not allowed in this context"),
        ("a:\n\t- b", 2, "while scanning for the next token: found character that cannot start any token"),
        ('a: "x', 1, "while scanning a quoted scalar: found unexpected end of stream"),
        ("- a\nb: c", 2, "while parsing a block collection: expected '-' indicator"),
        ("a: *x", 1, "expected an anchor: unknown anchor 'x'"),
        ("a: &a [*a]", 1, "expected an anchor: anchor 'a' value contains itself"),
        ("a: .nan", 1, "expected a number that JSON has: .nan is none"),
        ("a: .inf", 1, "expected a number that JSON has: .inf is none"),
        ("? [a]\n: b", 1, "expected a text as key, not a list or object"),
        ("~: b", 1, "expected a text as key"),
        ("a: {<<: 1}", 1, "expected an object, or a list of objects, after '<<'"),
        ("a: !!int x", 1, "expected a value of type int"),
        ("a: !!binary '*'", 1, "expected base64 of UTF-8 text"),
        ("ä: 1\nb: x\x00", 2, "expected YAML: control characters are not allowed"),
    ],
)
def test_yaml_errors_say_where_and_what_was_expected(text: str, line: int, expected: str) -> None:
    with pytest.raises(Malformed) as error:
        parse_documents(text, syntax="yaml", source="f.yaml")
    assert error.value.expected.startswith(expected)
    assert error.value.position.source == "f.yaml"
    assert error.value.position.line == line
    assert error.value.position.column > 0


def test_a_malformed_file_names_itself(tmp_path: Path) -> None:
    path = tmp_path / "claim.yaml"
    path.write_text("apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nspec: [\n")
    with pytest.raises(Malformed, match=r"claim.yaml: line 4, column 1: while parsing a flow node"):
        decode_file(path)


def test_a_wrong_type_in_a_file_has_a_place(tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text("apiVersion: v1\nkind: Pod\nspec:\n  nodeName: n1\n  containers:\n  - 3\n")
    with pytest.raises(WrongType, match=r"pod.yaml: line 5, column 3: json: cannot unmarshal number") as error:
        decode_file(path)
    assert error.value.path == "spec.containers[0]"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ('{"pool":{"generation":9223372036854775808}}', "number 9223372036854775808 into Go struct field"),
        ('{"pool":{"generation":-9223372036854775809}}', "ResourcePool.spec.pool.generation of type int64"),
        ('{"pool":{"generation":1.0}}', "cannot unmarshal number 1.0 into"),
        ('{"pool":{"generation":1e2}}', "cannot unmarshal number 100.0 into"),
        ('{"pool":{"generation":true}}', "cannot unmarshal bool into"),
        (
            '{"pool":[]}',
            "cannot unmarshal array into Go struct field ResourceSliceSpec.spec.pool of type v1.ResourcePool",
        ),
        ('{"driver":7}', "cannot unmarshal number into Go struct field ResourceSliceSpec.spec.driver of type string"),
        (
            '{"devices":{}}',
            "cannot unmarshal object into Go struct field ResourceSliceSpec.spec.devices of type []v1.Device",
        ),
        (
            '{"devices":["d"]}',
            "cannot unmarshal string into Go struct field ResourceSliceSpec.spec.devices of type v1.Device",
        ),
        (
            '{"allNodes":"yes"}',
            "cannot unmarshal string into Go struct field ResourceSliceSpec.spec.allNodes of type bool",
        ),
        ('{"devices":[{"attributes":[]}]}', "of type map[v1.QualifiedName]v1.DeviceAttribute"),
        ('{"devices":[{"capacity":{"m":{"value":"1 Gi"}}}]}', "quantities must match the regular expression"),
        ('{"devices":[{"capacity":{"m":{"value":{}}}}]}', "quantities must match the regular expression"),
        ('{"devices":[{"taints":[{"timeAdded":"soon"}]}]}', 'cannot parse "soon" as "2006"'),
    ],
)
def test_values_of_the_wrong_type_are_refused_in_the_words_of_kubernetes(spec: str, message: str) -> None:
    with pytest.raises(WrongType) as error:
        decode(f'{{{HEAD},"spec":{spec}}}')
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("literal", "why"),
    [
        ("NaN", "NaN is none"),
        ("-Infinity", "is none"),
        ("1e400", "too large"),
        ("1e+3081\x00+308", "too large"),
        ("7" * 5000, "5000 digits are too many"),
    ],
)
@pytest.mark.parametrize("syntax", ["json", ""])
def test_numbers_that_json_does_not_have_are_refused_where_they_stand(literal: str, why: str, syntax: str) -> None:
    with pytest.raises(Malformed, match=f"f.json: line 2, column 26: expected a number that JSON has: .*{why}"):
        decode(f'{{{HEAD},\n"spec":{{"NaN":"NaN", "x":{literal}}}}}', syntax=syntax, source="f.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "expected an object with apiVersion and kind, found []"),
        ("{}", "Object 'Kind' is missing in '{}'"),
        ('{"kind":"Pod"}', "Object 'apiVersion' is missing in"),
        ('{"kind":"Pod","apiVersion":7}', "Object 'apiVersion' is missing in"),
        ('{"kind":"Pod","apiVersion":"v9"}', 'no kind "Pod" is registered for version "v9"'),
        ('{"kind":"PodList","apiVersion":"v1","items":[]}', 'no kind "PodList" is registered for version "v1"'),
        ("", "expected one object, found 0"),
        ("kind: Pod\n---\nkind: Pod", "expected one object, found 2"),
    ],
)
def test_what_is_no_object_of_a_known_kind_is_refused(text: str, message: str) -> None:
    with pytest.raises(NotAnObject) as error:
        decode(text)
    assert message in str(error.value)


def test_a_document_of_a_file_that_is_no_object_has_a_place() -> None:
    good = "apiVersion: v1\nkind: Pod\n---\n"
    with pytest.raises(NotAnObject, match=r'^f.yaml: line 5, column 1: no kind "Pud" is registered for version "v1"'):
        decode_all(f"{good}apiVersion: v1\nkind: Pud\n", source="f.yaml")
    with pytest.raises(NotAnObject, match=r"^f.yaml: line 4, column 1: Object 'Kind' is missing"):
        decode_all(f"{good}metadata: {{}}\n", source="f.yaml")
    listed = '{"apiVersion":"v1","kind":"List",\n"items":[{"apiVersion":"v1",\n"kind":"Pud"}]}'
    with pytest.raises(NotAnObject, match=r'^f.json: line 3, column 1: no kind "Pud"'):
        decode_all(listed, source="f.json")


def test_bytes_that_are_no_utf8_have_a_place() -> None:
    with pytest.raises(Malformed, match=r"f.yaml: line 2, column 4: expected UTF-8"):
        decode(b"a: 1\nb: \xff", source="f.yaml")


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert decode(b'\xef\xbb\xbf{"apiVersion":"v1","kind":"Pod"}').kind.kind == "Pod"


def alias_bomb() -> str:
    lines = ["a: &a [x,x,x,x,x,x,x,x,x]"]
    for before, here in zip("abcdefghij", "bcdefghijk", strict=True):
        lines.append(f"{here}: &{here} [{','.join(['*' + before] * 9)}]")
    return "\n".join(lines)


@pytest.mark.parametrize(
    "make",
    [
        lambda: "[" * 10_000_000,
        lambda: '{"a":' * 2_000_000,
        lambda: "- " + "[" * 10_000_000,
        lambda: "- " * 5_000_000,
        lambda: "? " * 5_000_000,
        lambda: "".join(" " * depth + "a:\n" for depth in range(4_000)),
        alias_bomb,
        lambda: f'{{{HEAD},"spec":{{"pool":{{"generation":{"9" * 1_000_000}}}}}}}',
        lambda: f'{{"apiVersion":"v1","kind":"Node","status":{{"capacity":{{"cpu":"{"9" * 5_000_000}"}}}}}}',
        lambda: '{"apiVersion":"v1","kind":"Node","status":{"capacity":{"cpu":"1e999999999"}}}',
        lambda: f'{{{HEAD},"spec":{{"x":[{"1," * 1_000_000}1]}}}}',
    ],
    ids=["json lists", "json objects", "yaml flow", "yaml sequences", "yaml keys", "yaml mappings", "aliases",
         "digits", "quantity digits", "quantity exponent", "unknown field of a million"],
)  # fmt: skip
def test_a_bomb_is_an_error_and_quickly(make: Callable[[], str]) -> None:
    text = make()
    start = time.process_time()
    with pytest.raises(DecodeError):
        decode_all(text)
    assert time.process_time() - start < QUICKLY


@pytest.mark.parametrize(
    "make",
    [
        lambda: ",".join(f'"data":{{"k{number}":"v"}}' for number in range(30_000)),
        lambda: ",".join('"metadata":{"finalizers":["f"]}' for _ in range(30_000)),
    ],
    ids=["maps", "objects"],
)
def test_a_field_that_is_there_thousands_of_times_is_read_quickly(make: Callable[[], str]) -> None:
    text = f'{{"apiVersion":"v1","kind":"ConfigMap",{make()}}}'
    start = time.process_time()
    assert decode_all(text, strict=False, source="f.json")[0].problems
    assert time.process_time() - start < QUICKLY


HEAD_OF_RAW = '{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","spec":{"config":[{"opaque":'


@pytest.mark.parametrize("inner", ["1", '"\\ud800"'])
@pytest.mark.parametrize("depth", [601, 800, 960, 2_000])
def test_raw_json_that_is_too_deep_for_later_readers_is_refused(depth: int, inner: str) -> None:
    deep = '{"a":' * depth + inner + "}" * depth
    with pytest.raises(DecodeError, match=r"f.json: line 1, column \d+: exceeded max depth"):
        decode(f'{HEAD_OF_RAW}{{"driver":"d","parameters":{deep}}}}}]}}}}', source="f.json")


def test_deep_raw_json_is_written_as_yaml_that_reads_back() -> None:
    deep = '{"a":' * 590 + "1" + "}" * 590
    value = decode(f'{HEAD_OF_RAW}{{"driver":"d","parameters":{deep}}}}}]}}}}').object
    assert decode(encode(value, syntax="yaml"), syntax="yaml").object == value


def test_deep_but_allowed_parameters_are_read_and_written() -> None:
    deep = '{"a":' * 500 + "1" + "}" * 500
    head = '{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","spec":{"config":[{"opaque":'
    decoded = decode(f'{head}{{"driver":"d","parameters":{deep}}}}}]}}}}')
    assert deep.encode() in encode(decoded.object)


def test_a_number_that_fits_no_int_or_string_field_is_refused_with_its_value() -> None:
    pod = (
        '{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"c","livenessProbe":{"httpGet":{"port":%s}}}]}}'
    )
    with pytest.raises(WrongType, match=r"cannot unmarshal number 4294967296 into"):
        decode(pod % 2**32)
    with pytest.raises(WrongType, match=r"cannot unmarshal bool into"):
        decode(pod % "true")


def test_one_value_is_read_and_no_more() -> None:
    assert parse_json(' {"a": 1} ') == {"a": 1}
    with pytest.raises(Malformed, match="line 1, column 4: expected the end of the document"):
        parse_json("1 \t2")


def test_half_a_surrogate_pair_is_read_as_the_replacement_character() -> None:
    decoded = decode('{"apiVersion":"v1","kind":"Pod","metadata":{"annotations":{"a\\ud800":"\\udc00b"}}}')
    assert decoded.object.document["metadata"]["annotations"] == {"a\ufffd": "\ufffdb"}  # type: ignore[union-attr]
    twice = decode('{"apiVersion":"v1","kind":"Pod","metadata":{"name":"\\ud800","name":"b\\ud800"}}', strict=False)
    assert twice.object.document["metadata"] == {"name": "b\ufffd"}  # type: ignore[union-attr]
    assert twice.warnings == ('duplicate field "metadata.name"',)
