"""Quantities as a client sent them.

Kubernetes writes a quantity in its canonical form, except that it leaves a text alone that its parser takes for
canonical at a glance: `+1`, `1E3`, `1.500`. Amounts are the same; only the text that goes back to the client differs.
"""

from __future__ import annotations

import re

from drakit.base.memo import remember_short
from drakit.base.quantity import Quantity

_PARTS = re.compile(r"[+-]?0*([0-9]*)(?:\.([0-9]*))?([a-zA-Z]*)([-+]?[0-9]*)", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_MAX_DIGITS = 18  # what surely fits 64 bits


class SentQuantity(Quantity):
    """A quantity that is written as it was sent."""

    __slots__ = ("_sent",)

    _sent: str

    def __init__(self, amount: Quantity, text: str) -> None:
        super().__init__(amount.nanos, amount.format)
        object.__setattr__(self, "_sent", text)

    def __str__(self) -> str:
        return self._sent

    def __reduce__(self) -> tuple[type[Quantity], tuple[object, ...]]:  # type: ignore[override]
        return SentQuantity, (Quantity(self.nanos, self.format), self._sent)


@remember_short(16384)
def read_quantity(text: str) -> Quantity:
    """Read a quantity that a client sent; its `str` is what the client gets back. Raise QuantityError."""
    text = text.strip()
    amount = Quantity.parse(text)
    return SentQuantity(amount, text) if str(amount) != text and _is_left_alone(text) else amount


def _is_left_alone(text: str) -> bool:
    found = _PARTS.fullmatch(text)
    if not found:
        return False
    whole, fraction, suffix, exponent = found[1] or "0", found[2] or "", found[3], found[4]
    if suffix in _BINARY:
        small = len(whole) + int(_BINARY[suffix] * 0.3) + 1 <= 15
        return not fraction and small and int(whole) & 7 != 0
    power = int(exponent) if suffix in ("e", "E") and exponent else _DECIMAL.get(suffix, 0)
    digits, scale = whole + fraction, power - len(fraction)
    if len(digits) > _MAX_DIGITS or scale < -9 or scale % 3:
        return False
    return not digits.endswith("000") and not digits.startswith("0")
