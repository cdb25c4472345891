"""JSON text to plain data, with everything in it that strict decoding must know.

In:  text of unknown origin.
Out: plain data, in which an object that names a key twice is a `Repeated`; on demand, the positions of keys.
     Text that is not JSON, is too deep or has a number that JSON does not have raises Malformed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]  # undocumented, but in its place since Python 3.0
from typing import Any, NoReturn

from drakit.api.text.problems import TOO_DEEP, Malformed, NoNumber, Position

_EXPECTED = {
    "Expecting value": "expected a value",
    "Expecting property name enclosed in double quotes": "expected a key in double quotes",
    "Expecting ':' delimiter": "expected ':' after the key",
    "Expecting ',' delimiter": "expected ',' or the end of the list or object",
    "Extra data": "expected the end of the document",
    "Unterminated string starting at": "expected a closing double quote for the string",
    "Invalid control character at": "expected no control character inside a string",
    "Illegal trailing comma before end of object": "expected a key after ','",
    "Illegal trailing comma before end of array": "expected a value after ','",
}
_SPACE = re.compile(r"[ \t\n\r]*")
_TOKEN = re.compile(r'[ \t\n\r]*([{}\[\],:"]|[^{}\[\],:"\s]+)')
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_LONE = re.compile(r"[\ud800-\udfff]")
_STRING = r'"(?:[^"\\]|\\.)*+"'
_BRACKET = re.compile(rf"{_STRING}|[{{}}\[\]]", re.DOTALL)
"""A bracket; or a string, in which brackets do not count."""
_DEEP = 400
_QUOTED = 64
"""Characters by which a number is looked for and named."""
_MAX_DIGITS = 4300  # Python's limit for reading integers


class Repeated(dict[str, Any]):
    """An object with a key that occurs twice: as a dict the last one counts; `pairs` has all, in order."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def parse_json(text: str, *, source: str = "") -> Any:
    """Read exactly one JSON value."""
    documents = parse_json_documents(text, source=source, most=1)
    return documents[0]


def parse_json_documents(text: str, *, source: str = "", most: int | None = None) -> list[Any]:
    """Read JSON values that follow each other; at least one."""
    documents: list[Any] = []
    at = _skip_space(text, 0)
    while not documents or at < len(text):
        if most is not None and len(documents) == most:
            raise Malformed("expected the end of the document", position_at(text, at, source))
        value, at = _one(text, at, source)
        documents.append(value)
        at = _skip_space(text, at)
    if not _SURROGATE.search(text):
        return documents
    try:
        return [_without_lone_surrogates(each) for each in documents]
    except RecursionError:
        raise Malformed(TOO_DEEP, position_at(text, _deep_offset(text, 0), source)) from None


def position_at(text: str, offset: int, source: str = "") -> Position:
    start = text.rfind("\n", 0, offset)
    return Position(source, text.count("\n", 0, offset) + 1, offset - start)


def key_positions(text: str, wanted: frozenset[str]) -> Iterator[tuple[int, str, int, int]]:
    """For every key whose path is wanted: index of its document, path, line, column, in the order of the text."""
    line, start, at = 1, 0, 0  # the line of `at`, and where it starts: counted on, never from the top again
    for document, path, offset in _keys(text):
        if path in wanted:
            line += text.count("\n", at, offset)
            start = text.rfind("\n", at, offset) + 1 or start
            at = offset
            yield document, path, line, offset - start + 1


def _one(text: str, at: int, source: str) -> tuple[Any, int]:
    try:
        value, end = _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        expected = _EXPECTED.get(error.msg, error.msg[:1].lower() + error.msg[1:])
        ended = error.pos >= len(text) or error.msg.startswith("Unterminated")
        reason = f"unexpected end of JSON input: {expected}" if ended else expected
        raise Malformed(reason, position_at(text, error.pos, source)) from None
    except RecursionError:
        raise Malformed(TOO_DEEP, position_at(text, _deep_offset(text, at), source)) from None
    except ValueError as error:
        offset, reason = _bad_number(text, at, error)
        raise NoNumber(f"expected a number that JSON has: {reason}", position_at(text, offset, source)) from None
    return value, end


def _deep_offset(text: str, at: int) -> int:
    """The offset at which nesting gets deeper than what can be read for sure."""
    depth = 0
    for found in _BRACKET.finditer(text, at):
        sign = found[0]
        depth += (sign in "{[") - (sign in "}]")
        if depth > _DEEP:
            return found.start()
    return at


class _Unreadable(ValueError):
    """A word or number that JSON does not have, as it stands in the text."""


def _bad_number(text: str, at: int, error: ValueError) -> tuple[int, str]:
    """The offset of the number that could not be read, and the reason.

    One regular expression looks for it: three megabytes of other numbers before it would take seconds one by one.
    """
    if not isinstance(error, _Unreadable):  # Python's own, for too many digits
        wanted = rf"-?[0-9]{{{_MAX_DIGITS + 1},}}"
    else:
        wanted = rf"(?<![0-9.eE+-]){re.escape(str(error)[:_QUOTED])}"  # a pattern of a megabyte would take long
    for found in re.finditer(rf"{_STRING}|{wanted}", text[at:] if at else text):
        if found[0][0] != '"':
            return at + found.start(), _unreadable(found[0])
    return at, "there is one that is too large"


def _unreadable(number: str) -> str:
    if number.strip("-") in ("NaN", "Infinity"):
        return f"{number} is none"
    if len(number) > _MAX_DIGITS and number.lstrip("-").isdecimal():
        return f"{len(number)} digits are too many"
    return f"{number} is too large"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    return made if len(made) == len(pairs) else Repeated(pairs)


def _constant(word: str) -> NoReturn:
    raise _Unreadable(word)


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _Unreadable(text)
    return number


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)


def _skip_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _without_lone_surrogates(value: Any) -> Any:
    """Half of a surrogate pair cannot be written as UTF-8; Go reads it as U+FFFD, and so do we."""
    if isinstance(value, str):
        return _LONE.sub("\ufffd", value)
    if isinstance(value, Repeated):
        return Repeated([(_without_lone_surrogates(k), _without_lone_surrogates(v)) for k, v in value.pairs])
    if isinstance(value, dict):
        return {_without_lone_surrogates(k): _without_lone_surrogates(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_without_lone_surrogates(each) for each in value]
    return value


def _keys(text: str) -> Iterator[tuple[int, str, int]]:
    """Every key of valid JSON documents: index of the document, path, offset."""
    frames: list[tuple[str, int]] = []  # path of the container, and the index in it: -1 for an object
    document, at, path, key_next = 0, 0, "", False
    while token := _TOKEN.match(text, at):
        at, sign = token.end(), token[1]
        if sign in "{[":
            frames.append((path, -1 if sign == "{" else 0))
            key_next = sign == "{"
            path = path if key_next else f"{path}[0]"
        elif sign in "}]":
            frames.pop()
            key_next = False
            if not frames:
                document, path = document + 1, ""
        elif sign == "," and frames:
            parent, index = frames[-1]
            key_next = index < 0
            frames[-1] = (parent, index if key_next else index + 1)
            path = parent if key_next else f"{parent}[{index + 1}]"
        elif sign == '"':
            key, at = scanstring(text, at, True)
            if key_next:
                path = f"{frames[-1][0]}.{key}" if frames[-1][0] else key
                key_next = False
                yield document, path, token.start(1)
