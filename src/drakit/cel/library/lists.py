"""Functions on lists: Kubernetes' own (sum, min, isSorted, indexOf ..) and the extension (slice, sort, range ..)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key
from itertools import pairwise

from drakit.cel.checking.declarations import Function, Overload
from drakit.cel.checking.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    param,
)
from drakit.cel.errors import EvalError, no_such_overload
from drakit.cel.operators import add, require_list_size
from drakit.cel.operators import compare as ordered
from drakit.cel.values import Duration, Timestamp, Uint, Value, matches

MAX_RANGE = 1_000_000  # a longer range costs more than any expression may

_T = param("T")
_LIST = list_of(_T)
_COMPARABLE: tuple[tuple[str, Type], ...] = (
    ("int", INT),
    ("uint", UINT),
    ("double", DOUBLE),
    ("bool", BOOL),
    ("duration", DURATION),
    ("timestamp", TIMESTAMP),
    ("string", STRING),
    ("bytes", BYTES),
)
_ORDERED = frozenset({int, Uint, float, bool, Duration, Timestamp, str, bytes})
_ZEROS: dict[str, Value] = {"int": 0, "uint": Uint(0), "double": 0.0, "duration": Duration(0)}

List = tuple[Value, ...]


def _order(a: Value, b: Value) -> int:
    """Compare two values. Values without an order count as equal."""
    try:
        return ordered(a, b)
    except EvalError:
        return 0


def _is_sorted(values: List) -> bool:
    return all(_order(a, b) <= 0 for a, b in pairwise(values))


def _sum(zero: Value) -> Callable[[List], Value]:
    def total(values: List) -> Value:
        result = zero
        for value in values:
            result = add(result, value)
        return result

    return total


def _extreme(name: str, wanted: int) -> Callable[[List], Value]:
    def pick(values: List) -> Value:
        if not values:
            raise EvalError(f"{name} called on empty list")
        best = values[0]
        for value in values[1:]:
            if _order(value, best) == wanted:
                best = value
        return best

    return pick


def _index_of(values: List, item: Value) -> int:
    return next((index for index, value in enumerate(values) if matches(value, item)), -1)


def _last_index_of(values: List, item: Value) -> int:
    return next((index for index in range(len(values) - 1, -1, -1) if matches(values[index], item)), -1)


def _slice(values: List, start: int, end: int) -> List:
    call = f"cannot slice({start}, {end})"
    if start < 0 or end < 0:
        raise EvalError(f"{call}, negative indexes not supported")
    if start > end:
        raise EvalError(f"{call}, start index must be less than or equal to end index")
    if len(values) < end:
        raise EvalError(f"{call}, list is length {len(values)}")
    return values[start:end]


def _flatten(values: Value, depth: Value = 1) -> List:
    if values.__class__ is not tuple or depth.__class__ is not int:
        raise no_such_overload("flatten")
    if depth < 0:
        raise EvalError("level must be non-negative")
    for _ in range(depth):
        # Flat already: a large depth must not cost time.
        if not any(value.__class__ is tuple for value in values):
            break
        # Before the list is built: a nested list may multiply at every level.
        require_list_size(sum(len(value) if value.__class__ is tuple else 1 for value in values))
        values = tuple(inner for v in values for inner in (v if v.__class__ is tuple else (v,)))
    return tuple(values)


def _distinct(values: List) -> List:
    kept: list[Value] = []
    for value in values:
        if not any(matches(value, other) for other in kept):
            kept.append(value)
    return tuple(kept)


def sort(values: Value) -> List:
    if values.__class__ is not tuple:
        raise no_such_overload("sort")
    return sort_by(values, values)


def _by_key(a: tuple[Value, Value], b: tuple[Value, Value]) -> int:
    return _order(a[0], b[0])


def sort_by(values: Value, sort_keys: Value) -> List:
    """The values in the order of their keys, which must be of one type."""
    if values.__class__ is not tuple or sort_keys.__class__ is not tuple:
        raise no_such_overload("@sortByAssociatedKeys")
    if len(values) != len(sort_keys):
        raise EvalError("@sortByAssociatedKeys() expected a list of the same size as the associated keys list")
    if len({key.__class__ for key in sort_keys}) > 1:
        raise EvalError("list elements must have the same type")
    if sort_keys and sort_keys[0].__class__ not in _ORDERED:
        raise EvalError("list elements must be comparable")
    pairs = sorted(zip(sort_keys, values, strict=True), key=cmp_to_key(_by_key))
    return tuple(value for _, value in pairs)


def _range(count: int) -> List:
    if count > MAX_RANGE:
        raise EvalError(f"lists.range({count}) is longer than {MAX_RANGE}")
    return tuple(range(max(count, 0)))


def _reverse(values: List) -> List:
    return values[::-1]


def _per_type(name: str, overload: str, result: Type | None, call: Callable[[List], Value]) -> Function:
    overloads = tuple(
        Overload(overload.format(kind), (list_of(t),), result or t, call, member=True) for kind, t in _COMPARABLE
    )
    return Function(name, overloads)


def _sums() -> Function:
    kinds = [(kind, t) for kind, t in _COMPARABLE if kind in _ZEROS]
    overloads = (
        Overload(f"list_{kind}_sum_{kind}", (list_of(t),), t, _sum(_ZEROS[kind]), member=True) for kind, t in kinds
    )
    return Function("sum", tuple(overloads))


KUBERNETES = (
    _per_type("isSorted", "list_{}_is_sorted_bool", BOOL, _is_sorted),
    _sums(),
    _per_type("max", "list_{0}_max_{0}", None, _extreme("max", 1)),
    _per_type("min", "list_{0}_min_{0}", None, _extreme("min", -1)),
    Function("indexOf", (Overload("list_a_index_of_int", (_LIST, _T), INT, _index_of, member=True, raises=False),)),
    Function(
        "lastIndexOf",
        (Overload("list_a_last_index_of_int", (_LIST, _T), INT, _last_index_of, member=True, raises=False),),
    ),
)
EXTENSION = (
    Function("slice", (Overload("list_slice", (_LIST, INT, INT), _LIST, _slice, member=True, variadic=True),)),
    Function(
        "flatten",
        (
            Overload("list_flatten", (list_of(_LIST),), _LIST, _flatten, member=True),
            Overload("list_flatten_int", (list_of(DYN), INT), list_of(DYN), _flatten, member=True),
        ),
        unguarded=True,
    ),
    Function(
        "sort",
        tuple(Overload(f"list_{t.name}_sort", (list_of(t),), list_of(t), member=True) for _, t in _COMPARABLE),
        single=sort,
    ),
    Function(
        "@sortByAssociatedKeys",
        tuple(
            Overload(f"list_{t.name}_sortByAssociatedKeys", (_LIST, list_of(t)), _LIST, member=True)
            for _, t in _COMPARABLE
        ),
        single=sort_by,
    ),
    Function("lists.range", (Overload("lists_range", (INT,), list_of(INT), _range),)),
    Function("reverse", (Overload("list_reverse", (_LIST,), _LIST, _reverse, member=True, raises=False),)),
    Function("distinct", (Overload("list_distinct", (_LIST,), _LIST, _distinct, member=True, raises=False),)),
)
