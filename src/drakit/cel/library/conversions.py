"""From one type to another: `int()`, `string()`, `type()` and their kin."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal

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
    param,
    type_of,
)
from drakit.cel.errors import EvalError
from drakit.cel.library.times import format_duration, format_timestamp, parse_duration, parse_timestamp, plain
from drakit.cel.values import INT_MAX, UINT_MAX, Duration, Timestamp, TypeValue, Uint, Value, type_name

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_FLOAT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?(inf|infinity)|nan", re.ASCII | re.IGNORECASE)
_HEX_FLOAT = re.compile(r"[+-]?0x([0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)p[+-]?\d+", re.ASCII | re.IGNORECASE)
_MIN_SECONDS, _MAX_SECONDS = -62135596800, 253402300799


def _wrong(source: str, target: str) -> EvalError:
    return EvalError(f"type conversion error from '{source}' to '{target}'")


def _same(value: Value) -> Value:
    return value


def _int_from_text(text: str) -> int:
    # Bounded: Python takes quadratic time to read a number of many digits.
    if not re.fullmatch(r"[+-]?\d{1,40}", text, re.ASCII) or not -(2**63) <= int(text) <= INT_MAX:
        raise _wrong("string", "int")
    return int(text)


def _uint_from_text(text: str) -> Uint:
    if not re.fullmatch(r"\d{1,40}", text, re.ASCII) or int(text) > UINT_MAX:
        raise _wrong("string", "uint")
    return Uint(text)


def double_from_text(text: str) -> float:
    """A number as Go writes them: decimal, hexadecimal with an exponent of two, `inf`, `NaN`."""
    try:
        if _HEX_FLOAT.fullmatch(text):
            return float.fromhex(text)
        value = float(text) if _FLOAT.fullmatch(text) else None
    except OverflowError:
        value = None
    # Python reads 1e999 as infinity; in Go it is out of range.
    if value is None or (math.isinf(value) and "i" not in text.lower()):
        raise _wrong("string", "double")
    return value


def _bool_from_text(text: str) -> bool:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise _wrong("string", "bool")


def _int_from_double(value: float) -> int:
    # The comparison is False for NaN, so NaN overflows too.
    if not -(2.0**63) < value < 2.0**63:
        raise EvalError("integer overflow")
    return int(value)


def _uint_from_double(value: float) -> Uint:
    if not 0 <= value < 2.0**64:
        raise EvalError("unsigned integer overflow")
    return Uint(value)


def _int_from_uint(value: Uint) -> int:
    if value > INT_MAX:
        raise EvalError("integer overflow")
    return int(value)


def _uint_from_int(value: int) -> Uint:
    if value < 0:
        raise EvalError("unsigned integer overflow")
    return Uint(value)


def double_text(value: float) -> str:
    """The shortest digits that tell the double apart, with an exponent below 1e-4 and from 1e6 on."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0 or 1e-4 <= abs(value) < 1e6:
        return plain(value)
    _, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    power = len(digits) + int(exponent) - 1
    mantissa = str(digits[0]) + ("." + "".join(map(str, digits[1:])) if len(digits) > 1 else "")
    sign = "-" if value < 0 else ""
    return f"{sign}{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"


def _text_from_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvalError("invalid UTF-8 in bytes, cannot convert to string") from None


def _timestamp_from_int(seconds: int) -> Timestamp:
    if not _MIN_SECONDS <= seconds <= _MAX_SECONDS:
        raise EvalError("timestamp overflow")
    return Timestamp(seconds * 10**9)


def _no_duration(_: int) -> Duration:
    raise _wrong("int", "google.protobuf.Duration")


def type_value(value: Value) -> TypeValue:
    return TypeValue(type_name(value))


def _conversions(name: str, result: Type, *sources: tuple[str, Type, Callable[[Value], Value]]) -> Function:
    return Function(
        name, tuple(Overload(oid, (t,), result, call, raises=call is not _same) for oid, t, call in sources)
    )


FUNCTIONS = (
    Function("type", (Overload("type", (param("A"),), type_of(param("A")), raises=False),), single=type_value),
    Function("dyn", (Overload("to_dyn", (param("A"),), DYN, raises=False),), single=_same),
    _conversions("bool", BOOL, ("bool_to_bool", BOOL, _same), ("string_to_bool", STRING, _bool_from_text)),
    _conversions("bytes", BYTES, ("bytes_to_bytes", BYTES, _same), ("string_to_bytes", STRING, str.encode)),
    _conversions(
        "double",
        DOUBLE,
        ("double_to_double", DOUBLE, _same),
        ("int64_to_double", INT, float),
        ("string_to_double", STRING, double_from_text),
        ("uint64_to_double", UINT, float),
    ),
    _conversions(
        "duration",
        DURATION,
        ("duration_to_duration", DURATION, _same),
        ("int64_to_duration", INT, _no_duration),
        ("string_to_duration", STRING, parse_duration),
    ),
    _conversions(
        "int",
        INT,
        ("int64_to_int64", INT, _same),
        ("double_to_int64", DOUBLE, _int_from_double),
        ("duration_to_int64", DURATION, lambda value: value.nanos),
        ("string_to_int64", STRING, _int_from_text),
        ("timestamp_to_int64", TIMESTAMP, lambda value: value.nanos // 10**9),
        ("uint64_to_int64", UINT, _int_from_uint),
    ),
    _conversions(
        "string",
        STRING,
        ("string_to_string", STRING, _same),
        ("bool_to_string", BOOL, lambda value: "true" if value else "false"),
        ("bytes_to_string", BYTES, _text_from_bytes),
        ("double_to_string", DOUBLE, double_text),
        ("duration_to_string", DURATION, format_duration),
        ("int64_to_string", INT, str),
        ("timestamp_to_string", TIMESTAMP, format_timestamp),
        ("uint64_to_string", UINT, lambda value: str(int(value))),
    ),
    _conversions(
        "timestamp",
        TIMESTAMP,
        ("timestamp_to_timestamp", TIMESTAMP, _same),
        ("int64_to_timestamp", INT, _timestamp_from_int),
        ("string_to_timestamp", STRING, parse_timestamp),
    ),
    _conversions(
        "uint",
        UINT,
        ("uint64_to_uint64", UINT, _same),
        ("double_to_uint64", DOUBLE, _uint_from_double),
        ("int64_to_uint64", INT, _uint_from_int),
        ("string_to_uint64", STRING, _uint_from_text),
    ),
)
