"""The errors of an expression, by what has to change.

CelError
  CompileError     the text: carries every issue with its place
  EvalError        the data: a value that `&&` and `||` may absorb
  BudgetExceeded   the work: evaluation stopped at its cost limit; never absorbed
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class CelError(Exception):
    """Root of all errors of the engine."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One fault of an expression: what is wrong, where, and the line with a caret under the place."""

    message: str
    line: int
    column: int
    snippet: str

    def __str__(self) -> str:
        return f"ERROR: <input>:{self.line}:{self.column}: {self.message}{self.snippet}"


class CompileError(CelError):
    """The expression cannot be compiled; `issues` holds all reasons in the order of the text."""

    def __init__(self, issues: Sequence[Issue]) -> None:
        self.issues = tuple(sorted(issues, key=lambda issue: (issue.line, issue.column)))
        super().__init__("\n".join(map(str, self.issues)))


class EvalError(CelError):
    """The expression has no value for these data."""

    @property
    def message(self) -> str:
        return str(self.args[0])


class BudgetExceeded(CelError):
    """Evaluation cost more than it was allowed to."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


def no_such_overload(function: str = "", *types: str) -> EvalError:
    """The error for arguments that no overload of a function accepts."""
    if not function:
        return EvalError("no such overload")
    return EvalError(f"no such overload: {function}({', '.join(types)})" if types else f"no such overload: {function}")
