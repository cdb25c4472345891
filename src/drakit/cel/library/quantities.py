"""Kubernetes quantities as values: `quantity("40Gi")`, comparison, sums, conversion to numbers."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from drakit.base.quantity import Quantity, QuantityError
from drakit.cel.checking.declarations import Function, Overload
from drakit.cel.checking.types import BOOL, DOUBLE, INT, STRING, struct
from drakit.cel.errors import EvalError, no_such_overload
from drakit.cel.values import INT_MAX, INT_MIN, Opaque

QUANTITY = struct("kubernetes.Quantity")

_PARTS = re.compile(r"[+-]?0*([0-9]*)(?:\.([0-9]*))?([a-zA-Z]*)([+-]?[0-9]*)", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


class QuantityValue(Opaque):
    """An amount in nanos.

    `scale` is the power of ten that the number was written in, or None when it took arbitrary precision to read it:
    `isInteger` and `asInteger` answer by the way a number is held, not by its amount. `derived` marks a sum: on the
    right side of `==` it is taken for another type.
    """

    __slots__ = ("derived", "format", "nanos", "scale")
    type_name = "kubernetes.Quantity"

    def __init__(self, amount: Quantity, scale: int | None, *, derived: bool = False) -> None:
        self.nanos = amount.nanos
        self.format = amount.format
        self.scale = scale
        self.derived = derived

    def same(self, other: Any) -> bool:
        if other.derived:
            raise no_such_overload()
        return bool(self.nanos == other.nanos)

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __repr__(self) -> str:
        return str(Quantity(self.nanos, self.format))


def quantity_value(quantity: Quantity) -> QuantityValue:
    """A quantity of an API object as a value."""
    return quantity_from_text(str(quantity))


@lru_cache(maxsize=4096)
def quantity_from_text(text: str) -> QuantityValue:
    try:
        return QuantityValue(Quantity.parse(text), _scale(text))
    except QuantityError as error:
        raise EvalError(str(error)) from None


def _scale(text: str) -> int | None:
    """The power of ten that scales the digits; None when Go's parser would not hold them in 64 bits."""
    found = _PARTS.fullmatch(text)
    if found is None:
        return None
    whole, fraction, suffix, exponent = (part or "" for part in found.groups())
    whole = whole or "0"
    if suffix in _BINARY:
        power = _BINARY[suffix]
        # The fast path of the Go parser, to the digit: whether it is taken shows in `isInteger`.
        return 0 if not fraction and 15 - len(whole) - power * 3 // 10 - 1 >= 0 and "." not in text else None
    scale = int(exponent) if exponent and suffix in {"e", "E"} else _DECIMAL.get(suffix)
    if scale is None or len(whole) + len(fraction) > 18 or scale - len(fraction) < -9:
        return None
    return scale - len(fraction)


def _is_quantity(text: str) -> bool:
    try:
        quantity_from_text(text)
    except EvalError:
        return False
    return True


def compare(a: QuantityValue, b: QuantityValue) -> int:
    return (a.nanos > b.nanos) - (a.nanos < b.nanos)


def _is_integer(quantity: QuantityValue) -> bool:
    scale = quantity.scale
    return scale is not None and scale >= 0 and INT_MIN * 10**9 <= quantity.nanos <= INT_MAX * 10**9


def _as_integer(quantity: QuantityValue) -> int:
    if not _is_integer(quantity):
        raise EvalError("cannot convert value to integer")
    return quantity.nanos // 10**9


def _as_float(quantity: QuantityValue) -> float:
    try:
        return quantity.nanos / 10**9
    except OverflowError:
        return float("inf") if quantity.nanos > 0 else float("-inf")


def _sum(a: QuantityValue, nanos: int, scale: int | None) -> QuantityValue:
    """a plus an amount; the sum is held at the finer of the two scales, if it still fits."""
    total = a.nanos + nanos
    if not a.nanos:
        held = scale
    elif not nanos:
        held = a.scale
    else:
        held = None if a.scale is None or scale is None else min(a.scale, scale)
    # Go goes on in arbitrary precision when 64 bits overflow.
    if held is not None and not INT_MIN <= total // 10 ** (9 + held) <= INT_MAX:
        held = None
    return QuantityValue(Quantity(total, a.format), held, derived=True)


def _add(a: QuantityValue, b: QuantityValue) -> QuantityValue:
    return _sum(a, b.nanos, b.scale)


def _subtract(a: QuantityValue, b: QuantityValue) -> QuantityValue:
    return _sum(a, -b.nanos, b.scale)


def _add_int(a: QuantityValue, b: int) -> QuantityValue:
    return _sum(a, b * 10**9, 0)


def _subtract_int(a: QuantityValue, b: int) -> QuantityValue:
    return _sum(a, -b * 10**9, 0)


_PAIR, _WITH_INT = (QUANTITY, QUANTITY), (QUANTITY, INT)

FUNCTIONS = (
    Function("quantity", (Overload("string_to_quantity", (STRING,), QUANTITY, quantity_from_text),)),
    Function("isQuantity", (Overload("is_quantity_string", (STRING,), BOOL, _is_quantity, raises=False),)),
    Function(
        "sign",
        (Overload("quantity_sign", (QUANTITY,), INT, lambda q: (q.nanos > 0) - (q.nanos < 0), raises=False),),
    ),
    Function(
        "isGreaterThan",
        (Overload("quantity_is_greater_than", _PAIR, BOOL, lambda a, b: a.nanos > b.nanos, member=True, raises=False),),
    ),
    Function(
        "isLessThan",
        (Overload("quantity_is_less_than", _PAIR, BOOL, lambda a, b: a.nanos < b.nanos, member=True, raises=False),),
    ),
    Function("compareTo", (Overload("quantity_compare_to", _PAIR, INT, compare, member=True, raises=False),)),
    Function(
        "asApproximateFloat",
        (Overload("quantity_get_float", (QUANTITY,), DOUBLE, _as_float, member=True, raises=False),),
    ),
    Function("asInteger", (Overload("quantity_get_int", (QUANTITY,), INT, _as_integer, member=True),)),
    Function(
        "isInteger", (Overload("quantity_is_integer", (QUANTITY,), BOOL, _is_integer, member=True, raises=False),)
    ),
    Function(
        "add",
        (
            Overload("quantity_add", _PAIR, QUANTITY, _add, member=True, raises=False),
            Overload("quantity_add_int", _WITH_INT, QUANTITY, _add_int, member=True, raises=False),
        ),
    ),
    Function(
        "sub",
        (
            Overload("quantity_sub", _PAIR, QUANTITY, _subtract, member=True, raises=False),
            Overload("quantity_sub_int", _WITH_INT, QUANTITY, _subtract_int, member=True, raises=False),
        ),
    ),
)
