"""What lint found: errors that a server would give, and warnings that it would not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

import msgspec

from drakit.manifests import Manifest, ManifestProblem, find_positions


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


def warn(manifest: Manifest, rule: str, path: str, message: str) -> Draft:
    return find(manifest, Severity.WARNING, rule, path, message)


def find(manifest: Manifest, severity: Severity, rule: str, path: str, message: str) -> Draft:
    finding = Finding(
        severity=severity, rule=rule, source=manifest.source, object=_title(manifest), path=path, message=message
    )
    return Draft(finding, manifest.index, f"{manifest.prefix}.{path}".strip("."))


def refuse(problem: ManifestProblem, manifest: Manifest | None) -> Finding:
    """A problem of the reader as an error. An object that could not be read has the name that its text gives."""
    message = f'{problem.rule.removesuffix("-field")} field "{problem.path}"'
    return Finding(
        severity=Severity.ERROR,
        rule=problem.rule,
        source=problem.source,
        object=_title(manifest) if manifest else problem.object,
        path=problem.path,
        message=message if problem.rule.endswith("-field") else problem.reason,
        line=problem.line,
        column=problem.column,
    )


def locate(drafts: Iterable[Draft], texts: Mapping[str, str]) -> Iterator[Finding]:
    """The findings with line and column of their fields. Each text is read once."""
    by_source: dict[str, list[Draft]] = {}
    for draft in drafts:
        by_source.setdefault(draft.finding.source, []).append(draft)
    for source, found in by_source.items():
        positions = find_positions(texts[source], {(draft.document, draft.field) for draft in found})
        for draft in found:
            line, column = positions[draft.document, draft.field]
            yield msgspec.structs.replace(draft.finding, line=line, column=column)


def _title(manifest: Manifest) -> str:
    meta = manifest.metadata
    inside = f"{meta.namespace}/" if manifest.kind.namespaced else ""
    return f"{manifest.kind.kind} {inside}{meta.name or f'{meta.generate_name}*'}"


def in_order(findings: Iterable[Finding], sources: Sequence[str]) -> tuple[Finding, ...]:
    """Each once, as they stand in the texts."""
    rank = {source: index for index, source in enumerate(sources)}
    return tuple(sorted(dict.fromkeys(findings), key=lambda each: (rank[each.source], each.line, each.column)))
