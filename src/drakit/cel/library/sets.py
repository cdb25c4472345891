"""Lists taken as sets: `sets.contains`, `sets.intersects`, `sets.equivalent`."""

from __future__ import annotations

from drakit.cel.checking.declarations import Function, Overload
from drakit.cel.checking.types import BOOL, list_of, param
from drakit.cel.values import Value, matches

List = tuple[Value, ...]


def _contains(values: List, part: List) -> bool:
    return all(any(matches(wanted, value) for value in values) for wanted in part)


def _intersects(a: List, b: List) -> bool:
    return any(any(matches(x, y) for y in b) for x in a)


def _equivalent(a: List, b: List) -> bool:
    return _contains(a, b) and _contains(b, a)


_LIST = list_of(param("T"))
_PAIR = (_LIST, _LIST)

FUNCTIONS = (
    Function("sets.contains", (Overload("list_sets_contains_list", _PAIR, BOOL, _contains, raises=False),)),
    Function("sets.equivalent", (Overload("list_sets_equivalent_list", _PAIR, BOOL, _equivalent, raises=False),)),
    Function("sets.intersects", (Overload("list_sets_intersects_list", _PAIR, BOOL, _intersects, raises=False),)),
)
