"""`"%s-%d".format([..])`: the clauses, and their check against the types of the arguments.

In:  a format string and values, or the expressions of values with their static types.
Out: the text; EvalError at run time, FormatFault at compile time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from drakit.cel.checking.types import Type, TypeKind
from drakit.cel.errors import EvalError
from drakit.cel.library.conversions import double_from_text, double_text
from drakit.cel.library.times import format_duration, format_timestamp
from drakit.cel.syntax.ast import Expr, ListExpr, MapExpr, children
from drakit.cel.values import DefaultMap, Duration, Timestamp, TypeValue, Uint, Value, keys, type_name, weight

_DEFAULT_PRECISION = 6
_MAX_PRECISION = 1000
_MAX_PRINTED = 1_000_000
_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_ESCAPES = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
_ESCAPES |= {"\\": "\\\\", '"': '\\"'}
_NOT_A_NUMBER = frozenset({"NaN", "Infinity", "-Infinity"})


class FormatFault(Exception):
    """A format string that cannot work with its arguments; `at` is the argument at fault."""

    def __init__(self, message: str, at: Expr | None = None) -> None:
        super().__init__(message)
        self.at = at


@dataclass(frozen=True, slots=True)
class _Clause:
    letter: str
    precision: int | None


def _pieces(text: str) -> Iterator[str | _Clause]:
    """Literal text and clauses, in turn; EvalError where a clause is broken off or unknown."""
    at = 0
    while at < len(text):
        percent = text.find("%", at)
        if percent < 0:
            yield text[at:]
            return
        yield text[at:percent]
        if text[percent + 1 : percent + 2] == "%":
            yield "%"
            at = percent + 2
            continue
        clause, at = _clause(text, percent + 1)
        yield clause


def _clause(text: str, at: int) -> tuple[_Clause, int]:
    if at >= len(text):
        raise EvalError("unexpected end of string")
    precision = None
    if text[at] == ".":
        start = at = at + 1
        while at < len(text) and text[at] in "0123456789":
            at += 1
        if at >= len(text):
            raise EvalError("could not parse formatting clause: error while parsing precision: no end of precision")
        # Nine digits are enough to see that it is too large, and are read quickly.
        if start == at or int(text[start:at][:9]) > _MAX_PRECISION:
            raise EvalError("could not parse formatting clause: error while converting precision to integer")
        precision = int(text[start:at])
    if text[at] not in _FORMATS:
        raise EvalError(f'could not parse formatting clause: unrecognized formatting clause "{text[at]}"')
    return _Clause(text[at], precision), at + 1


def format_string(text: str, values: tuple[Value, ...]) -> str:
    """Put the values in the places of the clauses."""
    # Only the format string is paid for; what it prints is weighed first, and the weighing takes time too.
    if len(text) + sum(weight(value, _MAX_PRINTED) for value in values) > _MAX_PRINTED:
        raise EvalError(f"error during formatting: more than {_MAX_PRINTED} characters")
    out: list[str] = []
    taken = 0
    for piece in _pieces(text):
        if isinstance(piece, str):
            out.append(piece)
            continue
        if taken >= len(values):
            raise EvalError(f"index {taken} out of range")
        out.append(_FORMATS[piece.letter](values[taken], piece))
        taken += 1
    return "".join(out)


def check_format(text: str, args: Sequence[Expr], type_of: Callable[[Expr], Type]) -> None:
    """Raise FormatFault when the clauses do not fit the number or the types of the arguments."""
    taken = 0
    try:
        for piece in _pieces(text):
            if isinstance(piece, str):
                continue
            if taken >= len(args):
                raise FormatFault(f"index {taken} out of range")
            wrong = _unfit(args[taken], piece.letter, type_of)
            if wrong is not None:
                raise FormatFault(f"error during formatting: {_WRONG[piece.letter]}, was given {type_of(wrong)}", wrong)
            taken += 1
    except EvalError as error:
        raise FormatFault(error.message) from None
    if len(args) > taken:
        message = f"too many arguments supplied to string.format (expected {taken}, got {len(args)})"
        raise FormatFault(message)


def _unfit(arg: Expr, letter: str, type_of: Callable[[Expr], Type]) -> Expr | None:
    """The part of an argument that a clause cannot print; `%s` also looks into literal lists and maps."""
    stack = [arg]
    while stack:
        part = stack.pop()
        kind = type_of(part).kind
        if kind is not TypeKind.DYN and kind not in _KINDS[letter]:
            return part
        if letter == "s" and isinstance(part, ListExpr | MapExpr):
            # Reversed, so that the leftmost fault is found first.
            stack.extend(reversed(list(children(part))))
    return None


def _refuse(letter: str, value: Value) -> EvalError:
    return EvalError(f"error during formatting: {_WRONG[letter]}, was given {type_name(value)}")


def _text(value: Value, _: _Clause | None = None) -> str:
    """`%s`: a value as CEL would print it, strings bare."""
    match value:
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case Uint() | int():
            return str(int(value))
        case float():
            return double_text(value)
        case str():
            return value
        case bytes():
            return _decoded(value)
        case tuple():
            return "[" + ", ".join(map(_nested, value)) + "]"
        case dict() | DefaultMap():
            # Sorted by text, as maps have no order of their own.
            entries = sorted((_nested_key(k), _nested(v)) for k, v in zip(keys(value), value.values(), strict=True))
            return "{" + ", ".join(f"{k}:{v}" for k, v in entries) + "}"
        case Duration():
            return format_duration(value)
        case Timestamp():
            return format_timestamp(value)
        case TypeValue():
            return value.name
    raise _refuse("s", value)


def _nested(value: Value) -> str:
    """A value inside a list or map: quoted, so that its type shows."""
    match value:
        case str():
            return _quoted(value)
        case bytes():
            return "b" + _quoted(_decoded(value))
        case bool():
            return "true" if value else "false"
        case float() if math.isfinite(value):
            return f"{value:.{_DEFAULT_PRECISION}f}"
        case float():
            return _quoted(double_text(value))
        case Duration():
            return f"duration({_quoted(format_duration(value))})"
        case Timestamp():
            return f"timestamp({_quoted(format_timestamp(value))})"
    return _text(value)


def _nested_key(key: Value) -> str:
    if key.__class__ not in {str, bool, int, Uint}:
        raise EvalError(f"error during formatting: no formatting function for map key of type {type_name(key)}")
    return _nested(key)


def _decoded(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvalError("error during formatting: could not convert argument to string") from None


def _quoted(text: str) -> str:
    """Quoted as Go does it."""
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _decimal(value: Value, _: _Clause) -> str:
    if value.__class__ is int or value.__class__ is Uint:
        return str(int(value))
    raise _refuse("d", value)


def _double(letter: str, value: Value) -> float:
    if value.__class__ is float:
        return float(value)
    if value.__class__ is str and value in _NOT_A_NUMBER:
        return double_from_text(value)
    raise _refuse(letter, value)


def _special(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    return "∞" if number > 0 else "-∞"


def _fixed(value: Value, clause: _Clause) -> str:
    number = _double("f", value)
    if not math.isfinite(number):
        return _special(number)
    return f"{number:,.{_DEFAULT_PRECISION if clause.precision is None else clause.precision}f}"


def _scientific(value: Value, clause: _Clause) -> str:
    """Six digits whatever the precision says: upstream takes the precision for a width."""
    number = _double("e", value)
    if not math.isfinite(number):
        return _special(number)
    mantissa, _, exponent = f"{number:.{_DEFAULT_PRECISION}e}".partition("e")
    power = f"{'-' if exponent[0] == '-' else ''}{abs(int(exponent)):02d}".translate(_SUPERSCRIPTS)
    width = _DEFAULT_PRECISION if clause.precision is None else clause.precision
    return f"{mantissa}\u202f×\u202f10{power}".rjust(width)


def _binary(value: Value, _: _Clause) -> str:
    if value.__class__ is bool:
        return "1" if value else "0"
    if value.__class__ is int or value.__class__ is Uint:
        return f"{int(value):b}"
    raise _refuse("b", value)


def _hex(value: Value, clause: _Clause) -> str:
    match value:
        case bool():
            raise _refuse("x", value)
        case int():
            text = f"{int(value):x}"
        case str():
            text = value.encode().hex()
        case bytes():
            text = value.hex()
        case _:
            raise _refuse("x", value)
    return text.upper() if clause.letter == "X" else text


def _octal(value: Value, _: _Clause) -> str:
    if value.__class__ is int or value.__class__ is Uint:
        return f"{int(value):o}"
    raise _refuse("o", value)


_FORMATS: dict[str, Callable[[Value, _Clause], str]] = {
    "s": _text,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "x": _hex,
    "X": _hex,
    "o": _octal,
}
_WRONG = {
    "s": "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and"
    " timestamps",
    "d": "decimal clause can only be used on integers",
    "f": "fixed-point clause can only be used on doubles",
    "e": "scientific clause can only be used on doubles",
    "b": "only integers and bools can be formatted as binary",
    "x": "only integers, byte buffers, and strings can be formatted as hex",
    "X": "only integers, byte buffers, and strings can be formatted as hex",
    "o": "octal clause can only be used on integers",
}
_INTS = frozenset({TypeKind.INT, TypeKind.UINT})
_FLOATS = frozenset({TypeKind.DOUBLE, TypeKind.STRING})
_HEXES = _INTS | {TypeKind.STRING, TypeKind.BYTES}
_ALL = _HEXES | {
    TypeKind.LIST,
    TypeKind.MAP,
    TypeKind.DOUBLE,
    TypeKind.BOOL,
    TypeKind.TIMESTAMP,
    TypeKind.DURATION,
    TypeKind.TYPE,
    TypeKind.NULL,
}
_KINDS: dict[str, frozenset[TypeKind]] = {
    "s": _ALL,
    "d": _INTS,
    "f": _FLOATS,
    "e": _FLOATS,
    "b": _INTS | {TypeKind.BOOL},
    "x": _HEXES,
    "X": _HEXES,
    "o": _INTS,
}
