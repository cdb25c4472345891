"""Regular expressions in linear time: `matches`, `find`, `findAll`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import re2

from drakit.cel.checking.declarations import Function, Overload
from drakit.cel.checking.types import BOOL, INT, STRING, list_of
from drakit.cel.errors import EvalError, no_such_overload
from drakit.cel.values import Value

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False


@lru_cache(maxsize=1024)
def pattern(text: str) -> Any:
    """A compiled pattern. Raise EvalError when the text is not a valid pattern."""
    try:
        return re2.compile(text, options=_OPTIONS)
    except re2.error as error:
        detail = error.args[0] if error.args else "syntax"
        reason = detail.decode(errors="replace") if isinstance(detail, bytes) else detail
        raise EvalError(f"error parsing regexp: {reason}") from None


def matches(text: Value, regex: Value) -> bool:
    if text.__class__ is not str:
        raise no_such_overload("matches")
    if regex.__class__ is not str:
        raise no_such_overload()
    return pattern(regex).search(text) is not None


def find(text: str, regex: str) -> str:
    """The first match, or the empty string."""
    found = pattern(regex).search(text)
    return found.group() if found else ""


def find_all(text: str, regex: str, limit: int = -1) -> tuple[str, ...]:
    """All matches that do not overlap, at most `limit` when it is not negative."""
    found: list[str] = []
    end = -1
    for match in pattern(regex).finditer(text) if limit else ():
        if match.start() == match.end() == end:
            continue  # as in Go, an empty match right behind another match does not count
        found.append(match.group())
        end = match.end()
        if len(found) == limit:
            break
    return tuple(found)


FUNCTIONS = (
    Function(
        "matches",
        (
            Overload("matches", (STRING, STRING), BOOL),
            Overload("matches_string", (STRING, STRING), BOOL, member=True),
        ),
        single=matches,
    ),
    Function("find", (Overload("string_find_string", (STRING, STRING), STRING, find, member=True),)),
    Function(
        "findAll",
        (
            Overload("string_find_all_string", (STRING, STRING), list_of(STRING), find_all, member=True),
            Overload(
                "string_find_all_string_int",
                (STRING, STRING, INT),
                list_of(STRING),
                find_all,
                member=True,
                variadic=True,
            ),
        ),
    ),
)
