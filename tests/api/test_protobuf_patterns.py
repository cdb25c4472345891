"""Messages written by the pattern of an object that came before: the same bytes as without one, whatever differs."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drakit.api.codec.documents import to_wire
from drakit.api.codec.protobuf import encode_message, encode_stored
from drakit.api.codec.protobuf.patterns import Patterns
from drakit.api.codec.protobuf.table import INLINE, LIST, MAP, message_of, messages
from drakit.api.codec.protobuf.writers import writer_of
from drakit.api.registry import KINDS
from tests.api.strategies import objects
from tests.builders.documents import pod_document

POOLS: dict[str, tuple[Any, ...]] = {
    "string": ("", "a", "%b %d %%", "Grüße ☃", 'quoted "x"', "back\\slash", "\n", "2001-02-03T04:05:06Z", "x" * 200),
    "bytes": ("AP8=", "YQ==", ""), "bool": (True, False), "int32": (0, 1, -1), "int64": (0, 2**63 - 1),
    "time": ("2001-02-03T04:05:06Z", "1969-12-31T23:59:59Z", "2038-01-19T03:14:08Z"),
    "microtime": ("2001-02-03T04:05:06.000007Z", "2001-02-03T04:05:06.700000Z"), "duration": ("1h2m3.5s", "5m0s", ""),
    "quantity": ("1500m", "64Mi", "", "1"), "intorstring": (8080, "25%", "", "http"), "texts": (["a", "b"], ["c", "d"]),
    "raw": ({"a": [1, "x", None]}, {"a": [1, "y", None]}, {'k:{"ip":"10.0.0.1"}': {}}, {'k:{"ip":"10.0.0.2"}': {}}),
}  # fmt: skip


def drawn(message: str, random: Random, depth: int = 3) -> dict[str, Any]:
    """The message with values from the pools; numbers, keys and lengths of lists differ seldom."""
    found: dict[str, Any] = {}
    for field in messages()[message]:
        if field.form == INLINE:
            found |= drawn(field.type, random, depth)
        elif field.type in POOLS or depth:
            value = drawn_value(field.type, random, depth)
            if field.form == LIST:
                value = [value, drawn_value(field.type, random, depth)]
            found[field.name] = {"b/x": value, "a": value} if field.form == MAP else value
    return found


def drawn_value(type_: str, random: Random, depth: int) -> Any:
    if type_ not in POOLS:
        return drawn(type_, random, depth - 1)
    if type_ in ("bool", "int32", "int64", "raw", "intorstring"):
        return POOLS[type_][0 if random.random() < 0.98 else random.randrange(len(POOLS[type_]))]
    return random.choice(POOLS[type_])


def through_patterns(message: str, documents: list[Any]) -> int:
    """Write all objects as a server does, and compare. Returns how many had a pattern."""
    patterns, matched = Patterns(message), 0
    for document in documents:
        text = msgspec.json.encode(document)
        expected = writer_of(message)(document)
        made = patterns.write(text)
        if made is None:
            patterns.learn(text, expected)
        else:
            matched += 1
            assert made == expected, text
    return matched


def test_every_message_is_written_the_same_with_and_without_patterns() -> None:
    matched = sum(
        through_patterns(message, [drawn(message, Random(f"{message} {number}"), 2) for number in range(12)])
        for message in messages()
    )
    assert matched > len(messages())


def test_pods_that_differ_in_every_text_are_written_the_same() -> None:
    random = Random(18)
    pods = [drawn("core.v1.Pod", random, 3) for _ in range(60)]
    through_patterns("core.v1.Pod", pods)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(kind=st.sampled_from(KINDS), data=st.data())
def test_neighbours_of_any_kind_are_written_the_same(kind: Any, data: st.DataObject) -> None:
    name = message_of(kind.internal_version, kind.kind)
    if name is None:
        return
    first = to_wire(data.draw(objects(kind)))
    change = st.sampled_from(["", "x", "other", "2020-01-01T00:00:00Z", "ö", '"'])
    for _ in range(2):
        labels = [data.draw(st.dictionaries(st.sampled_from("ab"), change, max_size=2)) for _ in range(6)]
        named = [data.draw(change) for _ in range(6)]
        neighbours = [
            {**first, "metadata": {**first.get("metadata", {}), "name": each, "labels": label}}
            for each, label in zip(named, labels, strict=True)
        ]
        through_patterns(name, [first, *neighbours])


def running_pod(number: int, **changes: Any) -> dict[str, Any]:
    made = {**pod_document(f"p{number}"), **changes}
    time = f"2026-01-01T00:00:{number % 60:02}Z"
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": time}
    return {**made, "status": {"podIP": f"10.0.0.{number}", "conditions": [condition]}}


def decoded_pods(pods: list[dict[str, Any]]) -> int:
    """How many of these had to be read; all are written right."""
    patterns, count = Patterns("core.v1.Pod"), 0
    for each in pods:
        text, expected = msgspec.json.encode(each), encode_message("v1", "Pod", each)
        made = patterns.write(text)
        if made is None:
            count += 1
            patterns.learn(text, expected)
            made = expected
        assert made == expected
    return count


def test_the_pods_of_a_list_are_not_read_but_for_the_first_ones() -> None:
    assert decoded_pods([running_pod(number) for number in range(100)]) <= 3


def test_pods_of_several_sorts_each_have_a_pattern() -> None:
    sorts: list[dict[str, Any]] = [
        {},
        {"spec": {"nodeName": "n", "containers": []}},
        {"spec": {"priority": 7, "containers": [{"name": "a"}]}},
    ]
    pods = [running_pod(number, **sorts[number // 100]) for number in range(300)]
    assert decoded_pods(pods) <= 9


def test_pods_that_are_all_unlike_are_soon_not_studied_any_more() -> None:
    patterns, pods = Patterns("core.v1.Pod"), [running_pod(number, spec={"priority": number}) for number in range(50)]
    for each in pods:
        assert patterns.write(msgspec.json.encode(each)) is None
        patterns.learn(msgspec.json.encode(each), encode_message("v1", "Pod", each))
    assert patterns._lessons == 8


@pytest.mark.parametrize("name", ['say "no"', "back\\slash", "\u0007", "zwölf", "%b", ""])
def test_texts_with_escapes_are_read_as_what_they_stand_for(name: str) -> None:
    before = [running_pod(number) for number in range(5)]
    odd = {**running_pod(6), "metadata": {**running_pod(6)["metadata"], "name": name}}
    decoded_pods([*before, odd, *before])


def test_a_stored_object_is_decoded_only_if_it_has_no_pattern() -> None:
    read = []

    def written(number: int) -> bytes:
        document = pod_document(f"only-here-{number}")
        document["metadata"]["annotations"] = {"of": "this test alone"}
        text = msgspec.json.encode(document)

        def decoded() -> dict[str, Any]:
            read.append(number)
            return document

        made = encode_stored("v1", "Pod", text, decoded)
        assert made == encode_message("v1", "Pod", document)
        return made

    for number in range(20):
        written(number)
    assert len(read) <= 3


def test_lists_of_texts_that_are_messages_are_not_taken_from_another_object() -> None:
    users = [{"username": f"u{number}", "extra": {"scopes": [f"s{number}"]}} for number in range(6)]
    through_patterns("authentication.v1.UserInfo", users)
    assert through_patterns("authentication.v1.UserInfo", [{**each, "extra": {}} for each in users]) == 4


def test_what_the_message_does_not_have_does_not_begin_a_pattern() -> None:
    # Kubernetes has no such field, so nothing of it is on the wire; where it would stand is not known.
    assert (
        through_patterns("core.v1.ObjectReference", [{"name": "a", "unknown": f"{number}"} for number in range(6)]) == 0
    )


@pytest.mark.parametrize("swapped", [("10.0.0.1", "100"), ("100", "10.0.0.1")])
def test_texts_of_other_lengths_in_an_object_of_the_same_length_are_found(swapped: tuple[str, str]) -> None:
    """Objects whose JSON has the same length are cut in the same places: two texts may have changed places."""
    alike = [{"kind": f"{number:03}", "name": f"10.0.0.{number}", "uid": "u"} for number in range(9)]
    first, second = swapped
    odd = {"kind": first, "name": second, "uid": "u"}
    assert through_patterns("core.v1.ObjectReference", [*alike, odd, *alike]) >= 16


def test_a_time_that_takes_more_bytes_than_others_is_written_right() -> None:
    alike = [running_pod(number) for number in range(10, 20)]
    late = running_pod(15)
    late["status"]["conditions"][0]["lastTransitionTime"] = "9999-12-31T23:59:59Z"
    early = running_pod(15)
    early["status"]["conditions"][0]["lastTransitionTime"] = "1969-12-31T23:59:59Z"
    decoded_pods([*alike, late, early, *alike])


@pytest.mark.parametrize("name", ['p"5', "p\\5", "pö", "%%", "p%b"])
def test_texts_with_escapes_in_an_object_of_a_known_length_are_read(name: str) -> None:
    alike = [running_pod(number) for number in range(100, 110)]
    length = len(msgspec.json.encode(alike[0]))
    odd = {**alike[5], "metadata": {**alike[5]["metadata"], "name": name}}
    while len(msgspec.json.encode(odd)) < length:
        odd["metadata"]["name"] += "x"
    decoded_pods([*alike, odd, *alike])


def test_another_number_in_an_object_of_the_same_length_is_seen() -> None:
    alike = [running_pod(number, spec={"priority": 7}) for number in range(10, 20)]
    decoded_pods([*alike, running_pod(15, spec={"priority": 8}), *alike])


@pytest.mark.parametrize("size", [22, 35, 36, 37, 38, 127, 128, 300])
def test_lengths_that_look_like_a_percent_sign_are_lengths(size: int) -> None:
    alike = [{"name": f"{number:0{size}}", "uid": "u"} for number in range(6)]
    assert through_patterns("core.v1.ObjectReference", alike) == 4
