"""The functions that every CEL environment has: operators, size, tests on strings."""

from __future__ import annotations

from collections.abc import Callable

from drakit.cel import operators
from drakit.cel.checking.declarations import Function, Overload
from drakit.cel.checking.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
    param,
)
from drakit.cel.errors import no_such_overload
from drakit.cel.values import DefaultMap, Value, equals

_A, _B = param("A"), param("B")
_LIST, _MAP = list_of(_A), map_of(_A, _B)

_ORDERED: tuple[tuple[str, Type, Type], ...] = (
    ("bool", BOOL, BOOL),
    ("int64", INT, INT),
    ("int64_double", INT, DOUBLE),
    ("int64_uint64", INT, UINT),
    ("uint64", UINT, UINT),
    ("uint64_double", UINT, DOUBLE),
    ("uint64_int64", UINT, INT),
    ("double", DOUBLE, DOUBLE),
    ("double_int64", DOUBLE, INT),
    ("double_uint64", DOUBLE, UINT),
    ("string", STRING, STRING),
    ("bytes", BYTES, BYTES),
    ("timestamp", TIMESTAMP, TIMESTAMP),
    ("duration", DURATION, DURATION),
)
_NUMBERS = (("double", DOUBLE), ("int64", INT), ("uint64", UINT))


def _comparison(symbol: str, prefix: str) -> Function:
    name = f"_{symbol}_"
    overloads = tuple(Overload(f"{prefix}_{kind}", (left, right), BOOL) for kind, left, right in _ORDERED)
    return Function(name, overloads, single=operators.BINARY[name])


def _arithmetic(symbol: str, prefix: str, *extra: Overload) -> Function:
    name = f"_{symbol}_"
    plain = tuple(Overload(f"{prefix}_{kind}", (t, t), t) for kind, t in _NUMBERS)
    return Function(name, plain + extra, single=operators.BINARY[name])


def not_strictly_false(value: Value) -> bool:
    """Whether a quantifier has to go on: its result so far is not plainly false."""
    return value if value.__class__ is bool else True


def size(value: Value) -> int:
    kind = value.__class__
    if kind is str or kind is tuple or kind is dict or kind is bytes or kind is DefaultMap:
        return len(value)
    raise no_such_overload("size")


def _sizes() -> tuple[Overload, ...]:
    kinds = (("bytes", BYTES), ("list", _LIST), ("map", _MAP), ("string", STRING))
    functions = tuple(Overload(f"size_{kind}", (t,), INT, raises=False) for kind, t in kinds)
    methods = tuple(Overload(f"{kind}_size", (t,), INT, member=True, raises=False) for kind, t in kinds)
    return functions + methods


def _string_test(name: str, overload: str, test: Callable[[str, str], bool]) -> Function:
    def call(text: Value, part: Value) -> bool:
        if text.__class__ is not str or part.__class__ is not str:
            raise no_such_overload()
        return test(text, part)

    signature = Overload(overload, (STRING, STRING), BOOL, call, member=True, raises=False)
    return Function(name, (signature,), unguarded=True)


FUNCTIONS = (
    Function("_?_:_", (Overload("conditional", (BOOL, _A, _A), _A),)),
    Function("_&&_", (Overload("logical_and", (BOOL, BOOL), BOOL),)),
    Function("_||_", (Overload("logical_or", (BOOL, BOOL), BOOL),)),
    Function("!_", (Overload("logical_not", (BOOL,), BOOL),), single=operators.negate_bool),
    Function("@not_strictly_false", (Overload("not_strictly_false", (BOOL,), BOOL),), single=not_strictly_false),
    Function("_==_", (Overload("equals", (_A, _A), BOOL),), single=equals),
    Function("_!=_", (Overload("not_equals", (_A, _A), BOOL),), single=operators.not_equals),
    _arithmetic(
        "+",
        "add",
        Overload("add_bytes", (BYTES, BYTES), BYTES),
        Overload("add_duration_duration", (DURATION, DURATION), DURATION),
        Overload("add_duration_timestamp", (DURATION, TIMESTAMP), TIMESTAMP),
        Overload("add_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP),
        Overload("add_list", (_LIST, _LIST), _LIST),
        Overload("add_string", (STRING, STRING), STRING),
    ),
    _arithmetic(
        "-",
        "subtract",
        Overload("subtract_duration_duration", (DURATION, DURATION), DURATION),
        Overload("subtract_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP),
        Overload("subtract_timestamp_timestamp", (TIMESTAMP, TIMESTAMP), DURATION),
    ),
    _arithmetic("*", "multiply"),
    _arithmetic("/", "divide"),
    Function(
        "_%_",
        (Overload("modulo_int64", (INT, INT), INT), Overload("modulo_uint64", (UINT, UINT), UINT)),
        single=operators.modulo,
    ),
    Function(
        "-_",
        (Overload("negate_double", (DOUBLE,), DOUBLE), Overload("negate_int64", (INT,), INT)),
        single=operators.negate,
    ),
    _comparison("<", "less"),
    _comparison("<=", "less_equals"),
    _comparison(">", "greater"),
    _comparison(">=", "greater_equals"),
    Function(
        "_[_]",
        (Overload("index_list", (_LIST, INT), _A), Overload("index_map", (_MAP, _A), _B)),
        single=operators.element,
    ),
    Function(
        "@in",
        (Overload("in_list", (_A, _LIST), BOOL), Overload("in_map", (_A, _MAP), BOOL)),
        single=operators.contained,
    ),
    Function("size", _sizes(), single=size),
    _string_test("contains", "contains_string", lambda text, part: part in text),
    _string_test("endsWith", "ends_with_string", str.endswith),
    _string_test("startsWith", "starts_with_string", str.startswith),
)
