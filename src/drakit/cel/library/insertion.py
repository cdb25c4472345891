"""The function behind `transformMap` and `transformMapEntry`: a map with one more entry."""

from __future__ import annotations

from typing import Any

from drakit.cel.checking.declarations import Function, Overload
from drakit.cel.checking.types import map_of, param
from drakit.cel.errors import EvalError
from drakit.cel.operators import text_of
from drakit.cel.values import GrowingMap, Value, contains_key, keys, map_key

MAP_INSERT = "cel.@mapInsert"
_K, _V = param("K"), param("V")
_MAP = map_of(_K, _V)


def inserted(entries: dict[Any, Any], key: Value, value: Value) -> dict[Any, Any]:
    if contains_key(entries, key):
        raise EvalError(f"insert failed: key {text_of(key)} already exists")
    # The map of a running comprehension, which nobody else sees: it may change in place.
    if entries.__class__ is GrowingMap:
        entries[map_key(key)] = value
        return entries
    return {**entries, map_key(key): value}


def inserted_all(entries: dict[Any, Any], more: dict[Any, Any]) -> dict[Any, Any]:
    for key, value in zip(keys(more), more.values(), strict=True):
        entries = inserted(entries, key, value)
    return entries


FUNCTIONS = (
    Function(
        MAP_INSERT,
        (
            Overload("@mapInsert_map_key_value", (_MAP, _K, _V), _MAP, inserted, variadic=True),
            Overload("@mapInsert_map_map", (_MAP, _MAP), _MAP, inserted_all),
        ),
    ),
)
