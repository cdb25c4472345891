"""Optional values: `optional.of`, `orValue`, `first`, and access that may find nothing."""

from __future__ import annotations

from drakit.cel.checking.declarations import Function, Overload
from drakit.cel.checking.types import BOOL, DYN, INT, STRING, list_of, map_of, optional_of, param
from drakit.cel.errors import EvalError
from drakit.cel.operators import element, optional_element, text_of
from drakit.cel.values import NONE, DefaultMap, Duration, Message, Optional, Timestamp, Value

_V, _K = param("V"), param("K")
_OPT, _LIST, _MAP = optional_of(_V), list_of(_V), map_of(_K, _V)
_ZERO_TIME = -62135596800 * 10**9  # the first moment of the year 1, which is Go's zero time


def _is_zero(value: Value) -> bool:
    if value is None:
        return True
    if isinstance(value, Duration):
        return value.nanos == 0
    if isinstance(value, Timestamp):
        return value.nanos == _ZERO_TIME
    if isinstance(value, DefaultMap | Message) or value.__class__ in {bool, int, float, str, bytes, tuple, dict}:
        return not value
    # A Uint may be zero. Optionals, types and values of extension types never are.
    return isinstance(value, int) and value == 0


def _of_non_zero(value: Value) -> Optional:
    return NONE if _is_zero(value) else Optional(value)


def _first(values: tuple[Value, ...]) -> Optional:
    return Optional(values[0]) if values else NONE


def _last(values: tuple[Value, ...]) -> Optional:
    return Optional(values[-1]) if values else NONE


def _unwrap(values: tuple[Value, ...]) -> tuple[Value, ...]:
    for value in values:
        if value.__class__ is not Optional:
            raise EvalError(f"value {text_of(value)} is not optional")
    return tuple(optional.value for optional in values if optional.present)


def either(first: Value, second: Value) -> Value:
    """`or` with both sides evaluated: the first when it holds a value, otherwise the second."""
    return first if first.__class__ is not Optional or first.present else second


def or_value(optional: Value, default: Value) -> Value:
    # As upstream: a dynamic value that turns out to be no optional stands for itself.
    if optional.__class__ is not Optional:
        return optional
    return optional.value if optional.present else default


FUNCTIONS = (
    Function("optional.of", (Overload("optional_of", (_V,), _OPT, Optional, raises=False),)),
    Function(
        "optional.ofNonZeroValue", (Overload("optional_ofNonZeroValue", (_V,), _OPT, _of_non_zero, raises=False),)
    ),
    Function("optional.none", (Overload("optional_none", (), _OPT, lambda: NONE, variadic=True, raises=False),)),
    Function("value", (Overload("optional_value", (_OPT,), _V, lambda optional: optional.value, member=True),)),
    Function(
        "hasValue", (Overload("optional_hasValue", (_OPT,), BOOL, lambda o: o.present, member=True, raises=False),)
    ),
    Function("or", (Overload("optional_or_optional", (_OPT, _OPT), _OPT, either, member=True, raises=False),)),
    Function("orValue", (Overload("optional_orValue_value", (_OPT, _V), _V, or_value, member=True, raises=False),)),
    Function("_?._", (Overload("select_optional_field", (DYN, STRING), _OPT),), single=optional_element),
    Function(
        "_[?_]",
        (
            Overload("list_optindex_optional_int", (_LIST, INT), _OPT),
            Overload("optional_list_optindex_optional_int", (optional_of(_LIST), INT), _OPT),
            Overload("map_optindex_optional_value", (_MAP, _K), _OPT),
            Overload("optional_map_optindex_optional_value", (optional_of(_MAP), _K), _OPT),
        ),
        single=optional_element,
    ),
    Function(
        "_[_]",
        (
            Overload("optional_list_index_int", (optional_of(_LIST), INT), _OPT),
            Overload("optional_map_index_value", (optional_of(_MAP), _K), _OPT),
        ),
        single=element,
    ),
    Function("first", (Overload("list_first", (_LIST,), _OPT, _first, member=True, raises=False),)),
    Function("last", (Overload("list_last", (_LIST,), _OPT, _last, member=True, raises=False),)),
    Function("optional.unwrap", (Overload("optional_unwrap", (list_of(_OPT),), _LIST, _unwrap),)),
    Function("unwrapOpt", (Overload("optional_unwrapOpt", (list_of(_OPT),), _LIST, _unwrap, member=True),)),
)
