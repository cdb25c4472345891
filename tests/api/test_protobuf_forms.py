"""The protobuf form of every kind: what is written is read as it was, and an independent reader agrees."""

from __future__ import annotations

from google.protobuf import unknown_fields
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drakit.api.codec.documents import to_wire
from drakit.api.codec.protobuf import decode_protobuf, encode_message, encode_protobuf, has_message
from drakit.api.codec.protobuf.table import message_of
from drakit.api.registry import KINDS, Kind
from tests.api.protobuftwin import library, without_length
from tests.api.strategies import objects


def same(kind: Kind) -> bool:
    return kind.internal in kind.versions and has_message(kind.internal_version, kind.kind)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(kind=st.sampled_from([kind for kind in KINDS if same(kind)]), data=st.data())
def test_what_is_written_is_read_as_it_was(kind: Kind, data: st.DataObject) -> None:
    wire = to_wire(data.draw(objects(kind)))
    assert decode_protobuf(encode_protobuf(wire)) == wire


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(kind=st.sampled_from([kind for kind in KINDS if same(kind)]), data=st.data())
def test_another_library_reads_all_that_is_written(kind: Kind, data: st.DataObject) -> None:
    wire = to_wire(data.draw(objects(kind)))
    envelope = encode_message(kind.internal_version, kind.kind, wire)
    name = message_of(kind.internal_version, kind.kind)
    assert name is not None
    other = library(name)
    body = without_length(envelope)
    # It has another order of map keys. What it does not know it would keep, so it has to know everything.
    assert len(other.FromString(body).SerializeToString()) == len(body)
    assert not unknown_fields.UnknownFieldSet(other.FromString(body))


def test_every_kind_that_is_served_has_a_message() -> None:
    without = {
        (kind.group_version(version), kind.kind)
        for kind in KINDS
        for version in kind.versions
        if not has_message(kind.group_version(version), kind.kind)
    }
    assert without == set()
