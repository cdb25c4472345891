"""The string extension: parts, search, case, split and join. Positions count characters."""

from __future__ import annotations

from drakit.cel.checking.declarations import Function, Overload
from drakit.cel.checking.types import DYN, INT, STRING, Type, list_of
from drakit.cel.errors import EvalError
from drakit.cel.library.format import format_string
from drakit.cel.operators import require_text_size, text_of
from drakit.cel.values import Value

_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_UPPER = {lower: lower - 32 for lower in range(ord("a"), ord("z") + 1)}
_QUOTED = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
_QUOTED |= {"\\": "\\\\", '"': '\\"'}
# What Go's unicode.IsSpace takes for space; Python's strip() also takes the separators \x1c to \x1f.
_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))


def _out_of_range(index: int) -> EvalError:
    return EvalError(f"index out of range: {index}")


def char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def index_of(text: str, part: str, offset: int = 0) -> int:
    if not part:
        return offset
    if offset < 0:
        raise _out_of_range(offset)
    return text.find(part, offset)


def last_index_of(text: str, part: str) -> int:
    return text.rfind(part) if part else len(text)


def last_index_of_from(text: str, part: str, offset: int) -> int:
    """The last place at or before `offset` where the part starts."""
    if not part:
        return offset
    if offset < 0:
        raise _out_of_range(offset)
    return -1 if offset >= len(text) else text.rfind(part, 0, offset + len(part))


def replace(text: str, old: str, new: str, count: int = -1) -> str:
    if len(new) > len(old):
        # An upper bound, before anything is built: an empty `old` is found around every character.
        require_text_size((len(text) + 1) * len(new))
    return text.replace(old, new, max(count, -1))


def split(text: str, separator: str, limit: int = -1) -> tuple[str, ...]:
    """All parts, or at most `limit` of which the last holds the rest."""
    if limit == 0:
        return ()
    if separator:
        return tuple(text.split(separator, limit - 1 if limit > 0 else -1))
    if limit < 0 or limit >= len(text):
        return tuple(text)
    return (*text[: limit - 1], text[limit - 1 :])


def substring(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    return text[start:]


def substring_range(text: str, start: int, end: int) -> str:
    if start > end:
        raise EvalError(f"invalid substring range. start: {start}, end: {end}")
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    if not 0 <= end <= len(text):
        raise _out_of_range(end)
    return text[start:end]


def trim(text: str) -> str:
    return text.strip(_SPACE)


def join(parts: tuple[Value, ...], separator: str = "") -> str:
    for part in parts:
        if part.__class__ is not str:
            raise EvalError(f"join: invalid input: {text_of(part)}")
    require_text_size(sum(map(len, parts)) + len(separator) * len(parts))
    return separator.join(parts)


def quote(text: str) -> str:
    return '"' + "".join(_QUOTED.get(char, char) for char in text) + '"'


def lower_ascii(text: str) -> str:
    # Not lower(): only ASCII letters change.
    return text.translate(_LOWER)


def upper_ascii(text: str) -> str:
    return text.translate(_UPPER)


_TEXTS: Type = list_of(STRING)

FUNCTIONS = (
    Function("charAt", (Overload("string_char_at_int", (STRING, INT), STRING, char_at, member=True),)),
    Function(
        "indexOf",
        (
            Overload("string_index_of_string", (STRING, STRING), INT, index_of, member=True, raises=False),
            Overload("string_index_of_string_int", (STRING, STRING, INT), INT, index_of, member=True, variadic=True),
        ),
    ),
    Function(
        "lastIndexOf",
        (
            Overload("string_last_index_of_string", (STRING, STRING), INT, last_index_of, member=True, raises=False),
            Overload(
                "string_last_index_of_string_int",
                (STRING, STRING, INT),
                INT,
                last_index_of_from,
                member=True,
                variadic=True,
            ),
        ),
    ),
    Function(
        "lowerAscii", (Overload("string_lower_ascii", (STRING,), STRING, lower_ascii, member=True, raises=False),)
    ),
    Function(
        "upperAscii", (Overload("string_upper_ascii", (STRING,), STRING, upper_ascii, member=True, raises=False),)
    ),
    Function(
        "replace",
        (
            Overload(
                "string_replace_string_string",
                (STRING, STRING, STRING),
                STRING,
                replace,
                member=True,
                variadic=True,
            ),
            Overload(
                "string_replace_string_string_int",
                (STRING, STRING, STRING, INT),
                STRING,
                replace,
                member=True,
                variadic=True,
            ),
        ),
    ),
    Function(
        "split",
        (
            Overload("string_split_string", (STRING, STRING), _TEXTS, split, member=True, raises=False),
            Overload(
                "string_split_string_int",
                (STRING, STRING, INT),
                _TEXTS,
                split,
                member=True,
                variadic=True,
                raises=False,
            ),
        ),
    ),
    Function(
        "substring",
        (
            Overload("string_substring_int", (STRING, INT), STRING, substring, member=True),
            Overload(
                "string_substring_int_int", (STRING, INT, INT), STRING, substring_range, member=True, variadic=True
            ),
        ),
    ),
    Function("trim", (Overload("string_trim", (STRING,), STRING, trim, member=True, raises=False),)),
    Function(
        "format",
        (Overload("string_format", (STRING, list_of(DYN)), STRING, format_string, member=True, variadic=True),),
    ),
    Function("strings.quote", (Overload("strings_quote", (STRING,), STRING, quote, raises=False),)),
    Function(
        "join",
        (
            Overload("list_join", (_TEXTS,), STRING, join, member=True),
            Overload("list_join_string", (_TEXTS, STRING), STRING, join, member=True),
        ),
    ),
)
