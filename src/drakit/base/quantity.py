"""Exact resource amounts in Kubernetes' notation: `1500m`, `40Gi`, `12e6`.

In:  text (or a JSON number) of the wire.
Out: an immutable amount in whole nanos, its format family, and the canonical text of both.
"""

from __future__ import annotations

import re
from enum import StrEnum

from drakit.base.memo import remember_short

_NANO = 10**9
_BARE_BINARY = 40  # a suffix without digits means zero up to `Ti`; from `Pi` on it is an error, as on a real server
_CAP = (2**63 - 1) * _NANO  # binary amounts above this are cut to it, as the wire form promises
_MAX_EXPONENT = 1000  # nothing real comes near; it keeps a hostile exponent from filling the memory

_FORMAT_WRONG = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_NUMBER_WRONG = "unable to parse numeric part of quantity"
_SUFFIX_WRONG = "unable to parse quantity's suffix"

_SPLIT = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_EXPONENT = re.compile(r"[eE]([-+]?[0-9]+)", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}


class QuantityError(ValueError):
    """The text is no quantity."""


class Format(StrEnum):
    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


class Quantity:
    """An amount and the family it is written in; equal when the amounts are."""

    __slots__ = ("_text", "format", "nanos")

    nanos: int
    format: Format
    _text: str | None

    def __init__(self, nanos: int, format: Format = Format.DECIMAL_SI) -> None:  # noqa: A002 - the wire's word
        object.__setattr__(self, "nanos", nanos)
        object.__setattr__(self, "format", format)
        object.__setattr__(self, "_text", None)

    @staticmethod
    def parse(text: str) -> Quantity:
        """Read any of the three notations; raise QuantityError in Kubernetes' words."""
        return _parse(text)

    @staticmethod
    def of(value: int, format: Format = Format.DECIMAL_SI) -> Quantity:  # noqa: A002 - the wire's word
        """The whole number `value`."""
        return Quantity(value * _NANO, format)

    @property
    def value(self) -> int:
        """The amount in units, rounded away from zero."""
        return _away_from_zero(self.nanos, _NANO)

    @property
    def milli_value(self) -> int:
        """The amount in thousandths, rounded away from zero."""
        return _away_from_zero(self.nanos, _NANO // 1000)

    @property
    def sign(self) -> int:
        return (self.nanos > 0) - (self.nanos < 0)

    @property
    def is_whole(self) -> bool:
        """Whether the amount is a whole number of units."""
        return self.nanos % _NANO == 0

    def __str__(self) -> str:
        if self._text is None:
            object.__setattr__(self, "_text", _canonical(self.nanos, self.format))
        return self._text or ""

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a quantity is immutable: cannot set {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a quantity is immutable: cannot delete {name}")

    def __copy__(self) -> Quantity:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Quantity:
        return self

    def __reduce__(self) -> tuple[type[Quantity], tuple[int, Format]]:
        return Quantity, (self.nanos, self.format)

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __eq__(self, other: object) -> bool:
        return self.nanos == other.nanos if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __le__(self, other: Quantity) -> bool:
        return self.nanos <= other.nanos

    def __gt__(self, other: Quantity) -> bool:
        return self.nanos > other.nanos

    def __ge__(self, other: Quantity) -> bool:
        return self.nanos >= other.nanos

    def __bool__(self) -> bool:
        return self.nanos != 0

    def __add__(self, other: Quantity) -> Quantity:
        # Zero has no family worth keeping: a sum that starts from zero takes the family of what is added.
        return Quantity(self.nanos + other.nanos, self.format if self.nanos else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos - other.nanos, self.format if self.nanos else other.format)

    def __mul__(self, factor: int) -> Quantity:
        return Quantity(self.nanos * factor, self.format)

    __rmul__ = __mul__

    def __neg__(self) -> Quantity:
        return Quantity(-self.nanos, self.format)


ZERO = Quantity(0)


@remember_short(16384)
def _parse(text: str) -> Quantity:
    found = _SPLIT.fullmatch(text)
    if not found or not text:
        raise QuantityError(_FORMAT_WRONG)
    sign, whole, fraction, suffix = found.groups()
    fraction = fraction or ""
    if suffix in _DECIMAL:
        nanos, form = _scaled(whole, fraction, _DECIMAL[suffix]), Format.DECIMAL_SI
    elif suffix in _BINARY:
        nanos, form = _binary(whole, fraction, _BINARY[suffix])
    elif exponent := _EXPONENT.fullmatch(suffix):
        nanos, form = _scaled(whole, fraction, _bounded(exponent[1])), Format.DECIMAL_EXPONENT
    else:
        raise QuantityError(_SUFFIX_WRONG)
    return Quantity(-nanos if sign == "-" else nanos, form)


def _scaled(whole: str, fraction: str, exponent: int) -> int:
    """digits x 10^exponent in nanos; what is smaller than a nano counts as one."""
    power = 9 + exponent - len(fraction)
    if not whole and not fraction and power < 0:
        raise QuantityError(_NUMBER_WRONG)
    digits = _digits(whole + fraction)
    if power >= 0 or not digits:
        return digits * int(10 ** max(power, 0))
    return -(-digits // int(10**-power))


def _binary(whole: str, fraction: str, exponent: int) -> tuple[int, Format]:
    if not whole and not fraction and exponent > _BARE_BINARY:
        raise QuantityError(_NUMBER_WRONG)
    nanos = min(-(-(_digits(whole + fraction) << exponent) * _NANO // 10 ** len(fraction)), _CAP)
    return nanos, Format.DECIMAL_SI if 0 < nanos < _NANO else Format.BINARY_SI


def _digits(text: str) -> int:
    if len(text) > _MAX_EXPONENT:
        raise QuantityError(_NUMBER_WRONG)
    return int(text or "0")


def _bounded(exponent: str) -> int:
    if len(exponent) > 10 or abs(int(exponent)) > _MAX_EXPONENT:
        raise QuantityError(_SUFFIX_WRONG)
    return int(exponent)


def _away_from_zero(nanos: int, unit: int) -> int:
    return -(-nanos // unit) if nanos > 0 else nanos // unit


def _canonical(nanos: int, form: Format) -> str:
    """The shortest whole mantissa, so that no precision is lost and no fraction is needed."""
    if nanos == 0:
        return "0"
    # Small or broken binary amounts are clearer, and exact, in decimal notation.
    if form is Format.BINARY_SI and nanos % _NANO == 0 and abs(nanos) >= 1024 * _NANO:
        return _canonical_binary(nanos // _NANO)
    exponent = -9
    while nanos % 1000 == 0:
        nanos //= 1000
        exponent += 3
    if form is Format.DECIMAL_EXPONENT:
        return f"{nanos}e{exponent}" if exponent else str(nanos)
    # There is no suffix above E: real servers answer `1` to 10^21 of anything, and so do we.
    return f"{nanos}{_DECIMAL_SUFFIX.get(exponent, '')}"


def _canonical_binary(value: int) -> str:
    suffix = ""
    for name in _BINARY:
        if value % 1024:
            break
        value //= 1024
        suffix = name
    return f"{value}{suffix}"
