"""Field sets: the algebra, held against plain sets of paths."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakit.apiserver.patching.fieldsets import (
    difference,
    in_order,
    intersection,
    normalized,
    paths,
    render,
    set_of,
    union,
    within,
    without,
)

_ELEMENTS = st.sampled_from(["f:a", "f:b", 'k:{"n":"x"}', 'v:"y"'])
_PATHS = st.sets(st.lists(_ELEMENTS, min_size=1, max_size=4).map(tuple), max_size=8)


@given(_PATHS)
def test_a_set_has_exactly_its_paths(fields: set[tuple[str, ...]]) -> None:
    assert set(paths(set_of(fields))) == fields


@given(_PATHS, _PATHS)
def test_the_algebra_is_that_of_sets(one: set[tuple[str, ...]], two: set[tuple[str, ...]]) -> None:
    left, right = set_of(one), set_of(two)
    assert set(paths(union(left, right))) == one | two
    assert set(paths(difference(left, right))) == one - two
    assert set(paths(intersection(left, right))) == one & two


@given(_PATHS, _PATHS)
def test_without_takes_what_lies_below_too(one: set[tuple[str, ...]], two: set[tuple[str, ...]]) -> None:
    kept = {path for path in one if not any(path[: len(other)] == other for other in two)}
    assert set(paths(without(set_of(one), set_of(two)))) == kept


@given(_PATHS, _PATHS)
def test_equal_sets_have_equal_forms(one: set[tuple[str, ...]], two: set[tuple[str, ...]]) -> None:
    together = in_order(union(set_of(one), set_of(two)))
    assert together == in_order(set_of(one | two))
    assert normalized(together) == together


@given(_PATHS, _PATHS)
def test_the_keys_of_every_set_are_sorted(one: set[tuple[str, ...]], two: set[tuple[str, ...]]) -> None:
    left, right = set_of(one), set_of(two)
    upside_down = json.loads(json.dumps(dict(reversed(left.items()))))
    for made in (left, *(make(left, right) for make in (union, difference, intersection, within, without))):
        assert json.dumps(made) == json.dumps(in_order(made))
    assert json.dumps(normalized(upside_down)) == json.dumps(left)


def test_paths_read_as_kubernetes_prints_them() -> None:
    path = ("f:status", "f:reservedFor", 'k:{"uid":"u0"}', "f:name")
    assert render(path) == '.status.reservedFor[uid="u0"].name'
    assert render(("f:metadata", "f:finalizers", 'v:"a/b"')) == '.metadata.finalizers[="a/b"]'
    assert render(('k:{"containerPort":80,"protocol":"TCP"}',)) == '[containerPort=80,protocol="TCP"]'


def test_keys_of_an_element_are_put_in_order() -> None:
    assert normalized({'k:{"b":1,"a":2}': {}}) == {'k:{"a":2,"b":1}': {}}


@pytest.mark.parametrize("data", [[], {"x": {}}, {"k:[]": {}}, {"f:a": 3}, {"k:{": {}}])
def test_what_is_no_set_is_refused(data: object) -> None:
    with pytest.raises(ValueError, match=r".+"):
        normalized(data)


def test_elements_of_an_unknown_kind_are_passed_over() -> None:
    assert normalized({"i:3": {}, "f:a": {}}) == {"f:a": {}}


@given(_PATHS, _PATHS)
def test_within_keeps_what_is_in_or_below(one: set[tuple[str, ...]], two: set[tuple[str, ...]]) -> None:
    kept = {path for path in one if any(path[: len(other)] == other for other in two)}
    assert set(paths(within(set_of(one), set_of(two)))) == kept


def test_a_star_stands_for_any_element() -> None:
    fields = set_of([("f:a", 'k:{"n":"x"}', "f:b"), ("f:a", 'k:{"n":"x"}', "f:c")])
    assert within(fields, set_of([("f:a", "*", "f:b")])) == {"f:a": {'k:{"n":"x"}': {"f:b": {}}}}
