"""What lint found: errors that a server would give, and warnings that it would not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`rule` names the kind of finding, `path` the field. Line and column count from one; zero is: not known."""

    severity: Severity
    rule: str
    source: str
    object: str = ""
    path: str = ""
    message: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        place = f"{self.source}:{self.line}:{self.column}" if self.line else self.source
        subject = f" {self.object}:" if self.object else ""
        field = f" {self.path}:" if self.path else ""
        return f"{place}: {self.severity}:{subject}{field} {self.message} [{self.rule}]"


class Report(msgspec.Struct, frozen=True):
    """All findings, by source and line. `unread` says which texts are neither JSON nor YAML, and why."""

    findings: tuple[Finding, ...]
    checked: int = 0
    skipped: int = 0
    unread: tuple[str, ...] = ()

    @property
    def errors(self) -> int:
        return sum(finding.severity is Severity.ERROR for finding in self.findings)

    @property
    def warnings(self) -> int:
        return len(self.findings) - self.errors


class Draft(msgspec.Struct, frozen=True):
    """A finding whose place is not worked out yet: a field of one document of a text."""

    finding: Finding
    document: int
    field: str


def in_order(findings: Iterable[Finding], sources: Sequence[str]) -> tuple[Finding, ...]:
    """Each once, as they stand in the texts."""
    rank = {source: index for index, source in enumerate(sources)}
    return tuple(sorted(dict.fromkeys(findings), key=lambda each: (rank[each.source], each.line, each.column)))
