"""Nothing is lost on the way: every kind, through every version it is served in, through JSON and YAML."""

from __future__ import annotations

import contextlib
import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from drakit.api import (
    KINDS,
    Kind,
    ResourceClaim,
    decode,
    decode_plain,
    encode,
    from_json,
    from_plain,
    parse_documents,
    set_defaults,
    to_json,
    to_plain,
    to_wire,
)
from drakit.api.codec.documents import has_nulls, sharing
from drakit.api.schemas.compiler import shape_of
from drakit.api.text.yamldump import dump_yaml
from drakit.base.errors import DecodeError
from drakit.base.structs import Model
from tests.api.strategies import JSON_VALUES, TEXTS, WORDS, documents, objects

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WHOLE = [kind for kind in KINDS if kind.fully_typed]

every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.qualified)
every_whole_kind = pytest.mark.parametrize("kind", WHOLE, ids=lambda kind: kind.kind)
fairly = settings(
    deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@every_kind
@given(data=st.data())
@fairly
def test_an_object_survives_every_version_and_both_notations(kind: Kind, data: st.DataObject) -> None:
    value = data.draw(objects(kind))
    for version in kind.versions:
        for syntax in ("json", "yaml"):
            again = decode(encode(value, version, syntax=syntax), syntax=syntax)
            assert (again.kind, again.version, again.problems) == (kind, version, ())
            assert again.object == value


@every_kind
@given(data=st.data())
@fairly
def test_what_a_version_says_survives_the_internal_form(kind: Kind, data: st.DataObject) -> None:
    for version in kind.versions:
        once = to_wire(decode_plain(data.draw(documents(kind, version)), strict=True).object, version)
        twice = to_wire(decode_plain(once, strict=True).object, version)
        assert twice == once


@every_whole_kind
@given(data=st.data())
@fairly
def test_the_fast_encoder_writes_what_the_shape_says(kind: Kind, data: st.DataObject) -> None:
    value = data.draw(objects(kind))
    for version in kind.versions:
        assert json.loads(encode(value, version)) == json.loads(json.dumps(to_wire(value, version)))


def mixed(data: st.DataObject, one: Any, two: Any) -> Any:
    """An object with some parts of the one, some of the other."""
    names = [field.name for field in msgspec.structs.fields(one)]
    taken = {name: getattr(two, name) for name in names if data.draw(st.booleans())}
    return replace(one, **taken)


@every_whole_kind
@given(data=st.data())
@fairly
def test_a_struct_that_shares_parts_with_another_is_encoded_as_one_that_does_not(
    kind: Kind, data: st.DataObject
) -> None:
    known, other = data.draw(objects(kind)), data.draw(objects(kind))
    value = replace(mixed(data, known, other), metadata=mixed(data, known.metadata, other.metadata))
    plain, wire = sharing(value, known, to_wire(known)), to_wire(value)
    assert json.dumps(shape_of(kind.internal_version, kind.kind).complete(plain)) == json.dumps(wire)
    if not has_nulls(value) and not has_nulls(known):
        assert plain == wire
        assert list(plain) == list(wire)


@every_whole_kind
@given(data=st.data())
@fairly
def test_trusted_bytes_and_plain_data_give_the_object_back(kind: Kind, data: st.DataObject) -> None:
    value: Model = data.draw(objects(kind))
    assert from_json(kind.model, to_json(value)) == value
    assert from_json(kind.model, encode(value)) == value
    assert from_plain(kind.model, to_plain(value)) == value


@every_kind
@given(data=st.data())
@fairly
def test_defaults_are_set_once(kind: Kind, data: st.DataObject) -> None:
    once = set_defaults(data.draw(objects(kind)), NOW)
    assert set_defaults(once, datetime(2027, 1, 1, tzinfo=UTC)) == once


@given(st.lists(JSON_VALUES, min_size=1, max_size=3))
@settings(deadline=None)
def test_yaml_gives_any_json_back(values: list[Any]) -> None:
    assert parse_documents(dump_yaml({"all": values}), syntax="yaml") == [{"all": values}]
    boxed = [{"value": value} for value in values]
    assert parse_documents("---\n".join(map(dump_yaml, boxed)), syntax="yaml") == boxed


@given(st.dictionaries(TEXTS | WORDS, TEXTS | WORDS))
def test_yaml_keeps_texts_that_look_like_something_else(texts: dict[str, str]) -> None:
    assert parse_documents(dump_yaml({"texts": texts}), syntax="yaml") == [{"texts": texts}]


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode), st.sampled_from(["", "json", "yaml"]))
@settings(deadline=None, max_examples=300)
def test_no_bytes_break_the_decoder(data: bytes, syntax: str) -> None:
    with contextlib.suppress(DecodeError):
        decode(data, syntax=syntax)


@given(JSON_VALUES, st.sampled_from(["metadata", "spec", "status"]))
@settings(deadline=None, max_examples=200)
def test_no_json_value_breaks_a_kind(value: Any, part: str) -> None:
    document = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", part: value}
    with contextlib.suppress(DecodeError):
        assert isinstance(decode_plain(document).object, ResourceClaim)
