"""Whatever is changed about a good object: a verdict, never a crash; and what is accepted survives storing."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drakit.api import decode, decode_plain, encode, set_defaults
from drakit.base.errors import DecodeError
from drakit.base.gates import FeatureGates
from drakit.base.status import invalid
from drakit.validation import Context, drop_disabled_fields, empty_lists, validate_create, validate_update
from tests.validation.mutations import GOOD, KINDS
from tests.validation.objects import NOW

Place = tuple[str | int, ...]


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(
        ["", "a", "A_b", "a/b/c", "x" * 300, "1Gi", "-1", "0", "All", "In", "2026-01-02T03:04:05Z", "\x00"]
    ),
    st.text(max_size=8),
)
values = st.one_of(
    scalars,
    st.lists(scalars, max_size=3),
    st.dictionaries(st.sampled_from(["name", "cel", "a", "value", ""]), scalars, max_size=3),
)


def _places(value: Any, here: Place = ()) -> Iterator[Place]:
    if here:
        yield here
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in children:
        yield from _places(inner, (*here, key))


def _change(document: Any, place: Place, how: str, value: Any) -> None:
    parent = document
    for key in place[:-1]:
        parent = parent[key]
    last = place[-1]
    match how:
        case "drop":
            del parent[last]
        case "repeat" if isinstance(parent, list):
            parent.append(copy.deepcopy(parent[int(last)]))
        case _:
            parent[last] = value


@st.composite
def mutations(draw: st.DrawFn, kind: str) -> Any:
    document = copy.deepcopy(draw(st.sampled_from(GOOD[kind])))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.sampled_from(list(_places(document))))
        if place[0] in ("spec", "metadata"):
            _change(document, place, draw(st.sampled_from(["drop", "repeat", "set"])), draw(values))
    return document


def _sent(document: Any) -> Any:
    try:
        return set_defaults(decode_plain(document).object, NOW)
    except DecodeError:
        return None


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_changed_object_gets_a_verdict(kind: str, data: st.DataObject) -> None:
    document = data.draw(mutations(kind))
    gates = data.draw(st.sampled_from([FeatureGates.all_on(), FeatureGates.defaults()]))
    obj = _sent(document)
    if obj is None:
        return
    obj = drop_disabled_fields(obj, None, gates)
    context = Context(gates=gates, empty_lists=empty_lists(document))
    errors = validate_create(obj, context)
    assert json.loads(json.dumps([str(error) for error in errors])) is not None
    assert invalid(kind, "", "n", errors).code == 422
    before = _sent(data.draw(st.sampled_from(GOOD[kind])))
    validate_update(obj, before, context)
    if not errors:
        assert decode(encode(obj)).object == obj


@pytest.mark.parametrize("kind", KINDS)
def test_an_object_may_be_replaced_by_itself(kind: str) -> None:
    for document in GOOD[kind]:
        meta = {**document.get("metadata", {}), "resourceVersion": "1"}
        obj = _sent({**document, "metadata": meta})
        if obj is not None and not validate_create(
            obj, Context(gates=FeatureGates.all_on(), empty_lists=empty_lists(document))
        ):
            assert validate_update(obj, obj) == ()
