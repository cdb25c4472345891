"""The values that literals stand for: numbers in range, strings and bytes with their escapes undone."""

from __future__ import annotations

from drakit.cel.values import INT_MAX, INT_MIN, UINT_MAX, Uint

_SIMPLE = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92, "'": 39, '"': 34, "`": 96, "?": 63}
_HEX_DIGITS = {"x": 2, "X": 2, "u": 4, "U": 8}


class LiteralError(ValueError):
    """The literal has no value."""


def read_int(text: str, *, negative: bool) -> int:
    value = int(text, 16) if text.startswith("0x") else _decimal(text)
    value = -value if negative else value
    if not INT_MIN <= value <= INT_MAX:
        raise LiteralError("invalid int literal")
    return value


def read_uint(text: str) -> Uint:
    digits = text[:-1]
    value = int(digits, 16) if digits.startswith("0x") else _decimal(digits)
    if value > UINT_MAX:
        raise LiteralError("invalid uint literal")
    return Uint(value)


def _decimal(digits: str) -> int:
    # More digits than any 64 bit number has; Python itself refuses to convert thousands of them.
    digits = digits.lstrip("0") or "0"
    return int(digits) if len(digits) <= 20 else UINT_MAX + 1


def read_double(text: str, *, negative: bool) -> float:
    value = float(text)
    if value == float("inf"):
        raise LiteralError("invalid double literal")
    return -value if negative else value


def read_string(text: str) -> str:
    """The text between the quotes, escapes undone."""
    raw, body = _unquote(text)
    if raw or "\\" not in body:
        return body
    out: list[str] = []
    at = 0
    while at < len(body):
        if body[at] != "\\":
            out.append(body[at])
            at += 1
            continue
        code, at = _escape(body, at + 1)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise LiteralError("invalid unicode code point")
        out.append(chr(code))
    return "".join(out)


def read_bytes(text: str) -> bytes:
    """Like `read_string`, but `\\x` and octal escapes are bytes, and unicode escapes do not exist."""
    raw, body = _unquote(text[1:])
    if raw or "\\" not in body:
        return body.encode()
    out = bytearray()
    at = 0
    while at < len(body):
        if body[at] != "\\":
            out += body[at].encode()
            at += 1
            continue
        if body[at + 1] in "uU":
            raise LiteralError("unable to unescape string")
        code, at = _escape(body, at + 1)
        out.append(code & 0xFF)
    return bytes(out)


def _unquote(text: str) -> tuple[bool, str]:
    # In raw strings too: a line end is one newline, whatever the author's editor wrote.
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    raw = text[0] in "rR"
    text = text[1:] if raw else text
    width = 3 if len(text) >= 6 and text[:3] in ('"""', "'''") else 1
    return raw, text[width:-width]


def _escape(body: str, at: int) -> tuple[int, int]:
    """The code point of the escape whose letter is at `at`, and the offset behind it; the lexer checked its form."""
    letter = body[at]
    if letter in _SIMPLE:
        return _SIMPLE[letter], at + 1
    digits = _HEX_DIGITS.get(letter)
    if digits is None:
        return int(body[at : at + 3], 8), at + 3
    return int(body[at + 1 : at + 1 + digits], 16), at + 1 + digits
