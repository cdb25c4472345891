"""Every message of the table with every field set, and with none: written, read, and compared with another library."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from drakit.api.codec.protobuf import decode_protobuf, encode_protobuf
from drakit.api.codec.protobuf.readers import reader_of
from drakit.api.codec.protobuf.table import INLINE, LIST, MAP, MessageField, messages
from drakit.api.codec.protobuf.writers import writer_of
from tests.api.protobuftwin import library, without_length

VALUES: dict[str, tuple[Any, ...]] = {
    "string": ("a", "Grüße ☃ <&>\"\\\n"), "bytes": ("AP8=", "YQ=="), "bool": (True, True), "int32": (1, -(2**31)),
    "int64": (2**63 - 1, -1), "time": ("2001-02-03T04:05:06Z", "1969-12-31T23:59:59Z"),
    "microtime": ("2001-02-03T04:05:06.000007Z", "2001-02-03T04:05:06.700000Z"), "duration": ("1h2m3.5s", "5m0s"),
    "quantity": ("1500m", "64Mi"), "intorstring": (8080, "25%"), "raw": ({"a": [1, "x", None]}, {"b": {"c": True}}),
    "texts": (["a", "b"], ["c"]),
}  # fmt: skip


@cache
def filled(message: str) -> dict[str, Any]:
    """The message with all its fields; lists and maps have two elements."""
    found: dict[str, Any] = {}
    for field in messages()[message]:
        if field.form == INLINE:
            found |= filled(field.type)
        else:
            found[field.name] = value(field)
    return found


def value(field: MessageField) -> Any:
    pair = VALUES.get(field.type) or (filled(field.type), bare(field.type))
    if field.form == LIST:
        return list(pair)
    return {"b/x": pair[0], "a": pair[1]} if field.form == MAP else pair[0]


def bare(message: str) -> Any:
    """What is read of a message without fields."""
    return reader_of(message)(b"", 0, 0)


@pytest.mark.parametrize("form", [filled, bare])
def test_every_message_is_read_as_it_was_written(form: Any) -> None:
    for message in messages():
        body = without_length(writer_of(message)(form(message)))
        assert reader_of(message)(body, 0, len(body)) == form(message), message


@pytest.mark.parametrize("form", [filled, bare])
def test_another_library_writes_the_same_bytes_of_every_message(form: Any) -> None:
    for message in messages():
        body = without_length(writer_of(message)(form(message)))
        assert library(message).FromString(body).SerializeToString(deterministic=True) == body, message


@pytest.mark.parametrize(
    "name", sorted({each.type for rows in messages().values() for each in rows if each.form == MAP})
)
def test_a_null_in_a_map_is_an_entry_with_an_empty_value_unless_it_is_of_bytes(name: str) -> None:
    message, field = next(
        (message, each)
        for message, rows in sorted(messages().items())
        for each in rows
        if each.form == MAP and each.type == name
    )
    body = without_length(writer_of(message)({field.name: {"key": None}}))
    assert (b"\x0a\x03key\x12" in body) == (name != "bytes")


def test_a_pod_whose_eviction_has_no_time_stays_in_the_status_of_its_budget() -> None:
    status = {"disruptedPods": {"p": None}, "disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0}
    budget = {
        "kind": "PodDisruptionBudget", "apiVersion": "policy/v1", "metadata": {"name": "b"}, "spec": {},
        "status": {**status, "expectedPods": 0},
    }  # fmt: skip
    written = encode_protobuf(budget)
    assert decode_protobuf(written) == budget
    assert b"\x0a\x01p\x12\x00" in written
