"""Regular expressions in linear time: `matches`, `find`, `findAll`."""

from __future__ import annotations

import re
from collections.abc import Callable
from threading import Lock
from typing import Any

import re2

from drakit.cel.checking.declarations import Function, Overload
from drakit.cel.checking.types import BOOL, INT, STRING, list_of
from drakit.cel.errors import EvalError, no_such_overload
from drakit.cel.values import Value

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.max_mem = 1024 * 1024
"""Of one pattern, for its program and for what matching remembers: about 60,000 instructions, which take 30 ms."""
_REPETITIONS = 3000
"""The sum of all `{n,m}` of a pattern: compiling takes the square of it, a quarter of a second for 10,000."""
_REPETITION = re.compile(r"\{(\d{1,9})(?:,(\d{0,9}))?\}")
_SMALL = 300
"""Instructions of a pattern that compiled expressions may hold on to; most have some dozens."""
_KEPT = 1_000_000
"""Instructions of all patterns that are remembered: about 30 MB."""


def pattern(text: str) -> Any:
    """A compiled pattern. Raise EvalError when the text is not a valid pattern, or one that is too large."""
    found = _PATTERNS.get(text)
    if found is None:
        found = _compiled(text)
        _PATTERNS.add(text, found)
    return found


def searcher(text: str) -> Callable[[str], Any]:
    """A function that searches for the pattern. It holds on to a small pattern, and finds a large one again."""
    found = pattern(text)
    search: Callable[[str], Any] = found.search
    return search if found.programsize <= _SMALL else lambda value: pattern(text).search(value)


def _compiled(text: str) -> Any:
    if sum(int(each[2] or each[1]) for each in _REPETITION.finditer(text)) > _REPETITIONS:
        raise EvalError("error parsing regexp: expression has too many repetitions")
    try:
        return re2.compile(text, options=_OPTIONS)
    except re2.error as error:
        detail = error.args[0] if error.args else "syntax"
        reason = detail.decode(errors="replace") if isinstance(detail, bytes) else detail
        raise EvalError(f"error parsing regexp: {reason}") from None


class _Patterns:
    """Compiled patterns, the oldest first. Invariant: `_size` is the sum of their instructions and characters."""

    def __init__(self) -> None:
        self._found: dict[str, Any] = {}
        self._size = 0
        self._changing = Lock()  # expressions are compiled in several threads

    def get(self, text: str) -> Any:
        return self._found.get(text)

    def add(self, text: str, compiled: Any) -> None:
        """Keep a pattern; the oldest go when there is too much."""
        with self._changing:
            if text in self._found:
                return
            self._found[text] = compiled
            self._size += self._weight(text)
            while self._size > _KEPT:
                oldest = next(iter(self._found))
                self._size -= self._weight(oldest)
                del self._found[oldest]

    def _weight(self, text: str) -> int:
        return len(text) + int(self._found[text].programsize)


_PATTERNS = _Patterns()


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
