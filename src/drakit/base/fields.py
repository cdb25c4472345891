"""Field paths and field errors, rendered as Kubernetes renders them.

In:  validation yields a FieldError per broken rule.
Out: text such as `spec.devices.requests[0].exactly.count: Invalid value: -1: must be greater than zero`, and the
     causes of one Status.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import msgspec

from drakit.base.quantity import Quantity


class Path:
    """Where in an object: `Path("spec") / "devices" / "requests"`, then `path[0]` or `path.key("memory")`."""

    __slots__ = ("_text",)

    def __init__(self, text: str = "") -> None:
        self._text = text

    def __truediv__(self, name: str) -> Path:
        return Path(f"{self._text}.{name}" if self._text else name)

    def __getitem__(self, index: int) -> Path:
        return Path(f"{self._text}[{index}]")

    def key(self, name: str) -> Path:
        return Path(f"{self._text}[{name}]")

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Path({self._text!r})"

    def __eq__(self, other: object) -> bool:
        return self._text == other._text if isinstance(other, Path) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._text)


class ErrorKind(Enum):
    """The cause's reason on the wire, and the words that open its text."""

    REQUIRED = ("FieldValueRequired", "Required value")
    INVALID = ("FieldValueInvalid", "Invalid value")
    TOO_LONG = ("FieldValueTooLong", "Too long")
    TOO_SHORT = ("FieldValueTooShort", "Too short")
    TOO_MANY = ("FieldValueTooMany", "Too many")
    TOO_FEW = ("FieldValueTooFew", "Too few")
    DUPLICATE = ("FieldValueDuplicate", "Duplicate value")
    NOT_SUPPORTED = ("FieldValueNotSupported", "Unsupported value")
    NOT_FOUND = ("FieldValueNotFound", "Not found")
    FORBIDDEN = ("FieldValueForbidden", "Forbidden")
    TYPE_INVALID = ("FieldValueTypeInvalid", "Invalid value")
    INTERNAL = ("InternalError", "Internal error")

    @property
    def reason(self) -> str:
        return self.value[0]

    @property
    def words(self) -> str:
        return self.value[1]


class _Omitted(Enum):
    OMITTED = "omitted"


OMITTED: Final = _Omitted.OMITTED
"""Stands for a value that the message leaves out."""

_VALUELESS = {ErrorKind.REQUIRED, ErrorKind.FORBIDDEN, ErrorKind.TOO_LONG, ErrorKind.TOO_SHORT, ErrorKind.INTERNAL}


@dataclass(frozen=True, slots=True)
class FieldError:
    kind: ErrorKind
    path: Path
    value: Any = OMITTED
    detail: str = ""

    @property
    def body(self) -> str:
        """The text without the path, as a Status carries it in a cause."""
        text = self.kind.words
        if self.kind not in _VALUELESS and self.value is not OMITTED:
            text += f": {render(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        return f"{str(self.path) or '<nil>'}: {self.body}"


def render(value: Any) -> str:
    """A value as a field error shows it: strings quoted as Go quotes them, the rest as JSON."""
    if isinstance(value, Quantity):
        return f'"{value}"'
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, float):
        return f"{value:g}"
    return _escape_html(msgspec.json.encode(value, enc_hook=str).decode())


def quote(text: str) -> str:
    """A string literal in Go's notation."""
    return '"' + "".join(map(_quote_character, text)) + '"'


_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


def _quote_character(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _escape_html(text: str) -> str:
    """Go's JSON encoder keeps these out of its output."""
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def required(path: Path, detail: str = "") -> FieldError:
    return FieldError(ErrorKind.REQUIRED, path, OMITTED, detail)


def invalid(path: Path, value: Any, detail: str) -> FieldError:
    return FieldError(ErrorKind.INVALID, path, value, detail)


def type_invalid(path: Path, value: Any, detail: str) -> FieldError:
    return FieldError(ErrorKind.TYPE_INVALID, path, value, detail)


def duplicate(path: Path, value: Any) -> FieldError:
    return FieldError(ErrorKind.DUPLICATE, path, value)


def not_found(path: Path, value: Any) -> FieldError:
    return FieldError(ErrorKind.NOT_FOUND, path, value)


def forbidden(path: Path, detail: str) -> FieldError:
    return FieldError(ErrorKind.FORBIDDEN, path, OMITTED, detail)


def internal(path: Path, detail: str) -> FieldError:
    return FieldError(ErrorKind.INTERNAL, path, OMITTED, detail)


def not_supported(path: Path, value: Any, supported: Iterable[str]) -> FieldError:
    names = ", ".join(map(quote, supported))
    return FieldError(ErrorKind.NOT_SUPPORTED, path, value, f"supported values: {names}" if names else "")


def too_long(path: Path, limit: int, *, unit: str = "byte") -> FieldError:
    return FieldError(ErrorKind.TOO_LONG, path, OMITTED, f"may not be more than {_count(limit, unit)}")


def too_many(path: Path, actual: int, limit: int) -> FieldError:
    return FieldError(ErrorKind.TOO_MANY, path, actual, f"must have at most {_count(limit, 'item')}")


def too_few(path: Path, actual: int, limit: int) -> FieldError:
    return FieldError(ErrorKind.TOO_FEW, path, actual, f"must have at least {_count(limit, 'item')}")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


_INDEX = re.compile("[0-9]{1,18}")  # a longer number is the key of a map, of any length


def in_order(errors: Iterable[FieldError]) -> tuple[FieldError, ...]:
    """Sorted by path, `[2]` before `[10]`; errors of one path keep their order."""
    return tuple(sorted(errors, key=lambda error: _natural(str(error.path))))


def _natural(path: str) -> list[tuple[int, str]]:
    return [(int(part), "") if _INDEX.fullmatch(part) else (-1, part) for part in re.split(r"[.\[\]]+", path)]
