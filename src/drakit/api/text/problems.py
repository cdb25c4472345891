"""What can be wrong with bytes that somebody sent, and where.

DecodeError (base)
  Malformed       neither JSON nor YAML: the position, and what was expected there
    NoNumber      a number that JSON does not have: too large, NaN or Infinity
  WrongType       a field has a value of another type, or a text that is not a valid quantity or time
  NotAnObject     a document of a kind that is not known
  StrictError     unknown and duplicate fields, every one of them
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from drakit.base.errors import DecodeError

UNKNOWN = "unknown"
DUPLICATE = "duplicate"
TOO_DEEP = "exceeded max depth: expected fewer nested lists and objects"


class Position(msgspec.Struct, frozen=True):
    """A place in a text, counted from one. Line 0 means that the place is not known."""

    source: str = ""
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        place = f"line {self.line}, column {self.column}" if self.line else ""
        return f"{self.source}: {place}" if self.source and place else self.source or place


NOWHERE = Position()


class Problem(msgspec.Struct, frozen=True):
    """A field that is not known, or that is there twice."""

    kind: str
    path: str
    position: Position = NOWHERE

    def __str__(self) -> str:
        text = f'{self.kind} field "{self.path}"'
        return f"{self.position}: {text}" if str(self.position) else text


class Malformed(DecodeError):
    """The text is neither JSON nor YAML; nothing of it is used."""

    def __init__(self, expected: str, position: Position = NOWHERE) -> None:
        self.expected = expected
        self.position = position
        super().__init__(f"{position}: {expected}" if str(position) else expected)


class NoNumber(Malformed):
    """JSON except for a number such as `NaN`. It must not be read as YAML, where that would silently be a text."""


class WrongType(DecodeError):
    """A field holds a value of another type; the text is the one that Kubernetes gives."""

    def __init__(self, reason: str, path: str = "", position: Position = NOWHERE) -> None:
        self.reason = reason
        self.path = path
        self.position = position
        super().__init__(f"{position}: {reason}" if str(position) else reason)


class NotAnObject(DecodeError):
    """The document is no object of a kind that is known here."""


class StrictError(DecodeError):
    """Unknown or duplicate fields where none are allowed; `problems` holds every one."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("strict decoding error: " + ", ".join(str(problem) for problem in self.problems))
