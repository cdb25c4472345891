"""`drakit lint`: check manifests without a server.

In:  files with any objects: slices, classes, claims, templates, rules, pods, groups, nodes.
Out: one line per finding, or JSON. Exit code 0 when nothing is wrong, 1 when there are errors (with `--strict` also
     for warnings alone), 2 when a file cannot be read or is neither JSON nor YAML.
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

import msgspec
import typer

from drakit.base.gates import FeatureGates
from drakit.cli.flags.files import read_stdin
from drakit.lint import Report, Severity
from drakit.lint import lint as lint_texts
from drakit.manifests import read_files


class LintOutput(StrEnum):
    TEXT = "text"
    JSON = "json"


def lint(
    files: Annotated[
        list[str],
        typer.Option("-f", "--filename", help="A YAML or JSON file, a folder of them, or - for standard input."),
    ],
    output: Annotated[LintOutput, typer.Option("-o", "--output", help="How to show findings.")] = LintOutput.TEXT,
    strict: Annotated[bool, typer.Option("--strict", help="Fail for warnings, too.")] = False,
    feature_gates: Annotated[
        str | None, typer.Option("--feature-gates", help="Name=bool, separated by commas; all are on otherwise.")
    ] = None,
) -> None:
    """Check manifests as the API server would, and warn of what it would not notice."""
    gates = FeatureGates.all_on() if feature_gates is None else FeatureGates.parse(feature_gates)
    read = read_files(files, stdin=read_stdin)
    report = lint_texts(read.contents, gates=gates, now=datetime.now(UTC))
    problems = (*map(str, read.problems), *report.unread)
    _show(report, problems, output)
    if problems:
        raise typer.Exit(2)
    if report.errors or (strict and report.warnings):
        raise typer.Exit(1)


def _show(report: Report, problems: tuple[str, ...], output: LintOutput) -> None:
    for problem in problems:
        typer.echo(f"error: {problem}", err=True)
    if output is LintOutput.JSON:
        _show_json(report, problems)
        return
    for finding in report.findings:
        typer.echo(str(finding))
    if report.checked or not problems:
        typer.echo(_summary(report), err=True)


def _show_json(report: Report, problems: tuple[str, ...]) -> None:
    document = {
        "findings": report.findings,
        "errors": report.errors,
        "warnings": report.warnings,
        "checked": report.checked,
        "skipped": report.skipped,
        "unreadable": problems,
    }
    typer.echo(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())


def _summary(report: Report) -> str:
    counts = {severity: sum(each.severity is severity for each in report.findings) for severity in Severity}
    told = ", ".join(_plural(number, severity) for severity, number in counts.items())
    passed = f", {report.skipped} of other kinds passed over" if report.skipped else ""
    return f"{_plural(report.checked, 'object')} checked{passed}: {told}"


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
