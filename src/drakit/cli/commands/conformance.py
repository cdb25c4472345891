"""`drakit conformance -- COMMAND ARGUMENTS…`: judge a DRA driver over its real sockets.

In:  the command that starts the driver, with placeholders; a kubeconfig, or nothing for a server of its own.
Out: a table with a verdict and the reason per rule, or JSON, YAML; JUnit XML beside it. Exit code 0 when no rule was
     broken, 1 when one was, 2 for a wrong flag or command, 3 when the cluster cannot be reached.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import tempfile
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
import yaml

from drakit.api import parse_documents
from drakit.base.errors import UsageError
from drakit.base.inputfiles import read_settings_text
from drakit.cli.flags.files import explained
from drakit.cli.output.tables import print_table
from drakit.conformance import (
    RULES,
    ClusterWishes,
    CommandLauncher,
    ConformanceRule,
    DriverHints,
    RuleResult,
    RuleVerdict,
    Timeouts,
    judge,
    open_testbed,
    reports,
    select,
)

_DEFAULT = Timeouts()


class ReportFormat(StrEnum):
    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What the flags say, put together."""

    command: Sequence[str]
    rules: Sequence[ConformanceRule]
    kubeconfig: Path | None
    wishes: ClusterWishes
    timeouts: Timeouts
    hints: DriverHints
    log: Path | None


def _seconds(text: str) -> Any:
    return typer.Option(min=0.0, help=f"Seconds {text}.")


def conformance(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            help="What starts the driver. {kubeconfig}, {node_name}, {plugin_dir}, {registry_dir}, {cdi_dir} and "
            "{pod_uid} are filled in; the same is in the environment."
        ),
    ] = None,
    kubeconfig: Annotated[Path | None, typer.Option(help="Use this cluster instead of a server of its own.")] = None,
    node_name: Annotated[str, typer.Option(help="The node that the driver is on.")] = "conformance",
    node_label: Annotated[list[str] | None, typer.Option(help="NAME=VALUE of the node that the suite makes.")] = None,
    namespace: Annotated[str, typer.Option("-n", "--namespace", help="Where claims are made.")] = "default",
    manifest: Annotated[list[Path] | None, typer.Option(help="Objects to create first: rights, classes.")] = None,
    service_account: Annotated[str, typer.Option(help="NAMESPACE/NAME that the driver acts as.")] = "",
    rule: Annotated[list[str] | None, typer.Option(help="Judge this rule only; may be repeated.")] = None,
    skip: Annotated[list[str] | None, typer.Option(help="Leave this rule out; may be repeated.")] = None,
    list_rules: Annotated[bool, typer.Option("--list-rules", help="Show the rules and why they matter.")] = False,
    device: Annotated[list[str] | None, typer.Option(help="Use devices of this name only.")] = None,
    parameters: Annotated[Path | None, typer.Option(help="Opaque configuration for every claim, JSON or YAML.")] = None,
    removal_arguments: Annotated[str, typer.Option(help="Further arguments that make it remove its slices.")] = "",
    break_command: Annotated[str, typer.Option(help="A command that makes a device sick.")] = "",
    heal_command: Annotated[str, typer.Option(help="A command that makes it well again.")] = "",
    start_timeout: Annotated[float, _seconds("until the driver registers")] = _DEFAULT.start,
    call_timeout: Annotated[float, _seconds("for one call")] = _DEFAULT.call,
    publish_timeout: Annotated[float, _seconds("until its slices are complete")] = _DEFAULT.publish,
    repair_timeout: Annotated[float, _seconds("until an edited slice is as it was")] = _DEFAULT.repair,
    stop_timeout: Annotated[float, _seconds("from SIGTERM to its end")] = _DEFAULT.stop,
    slow: Annotated[float, _seconds("for which the API server is slow")] = _DEFAULT.slow,
    settle: Annotated[float, _seconds("to look on where nothing should happen")] = _DEFAULT.settle,
    health_timeout: Annotated[float, _seconds("until a health stream tells something")] = _DEFAULT.health,
    output: Annotated[ReportFormat, typer.Option("-o", "--output", help="How to show results.")] = ReportFormat.TABLE,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML to this file, too.")] = None,
    driver_log: Annotated[Path | None, typer.Option(help="Append what the driver prints to this file.")] = None,
) -> None:
    """Judge a DRA driver, written in any language, over its real sockets."""
    if list_rules:
        print_table(("rule", "title", "why"), [(each.id, each.title, each.why) for each in RULES])
        return
    if not command:
        raise UsageError("say what starts the driver: drakit conformance [options] -- COMMAND ARGUMENTS…")
    run = Run(
        command=command,
        rules=select(RULES, rule or (), skip or ()),
        kubeconfig=kubeconfig,
        wishes=ClusterWishes(
            node_name=node_name,
            node_labels=dict(_label(each) for each in node_label or ()),
            namespace=namespace,
            manifests=[each for path in manifest or () for each in _documents(path)],
            service_account=service_account,
        ),
        timeouts=Timeouts(
            start=start_timeout,
            call=call_timeout,
            publish=publish_timeout,
            repair=repair_timeout,
            stop=stop_timeout,
            slow=slow,
            settle=settle,
            health=health_timeout,
        ),
        hints=DriverHints(
            devices=tuple(device or ()),
            parameters=_documents(parameters)[0] if parameters else None,
            removal_arguments=tuple(shlex.split(removal_arguments)),
            break_command=tuple(shlex.split(break_command)),
            heal_command=tuple(shlex.split(heal_command)),
        ),
        log=driver_log,
    )
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # the library would tell of every driver that is killed
    driver, results = asyncio.run(_judged(run))
    if junit is not None:
        with explained("--junit"):
            junit.write_bytes(reports.junit(driver, results))
    _show(driver, results, output)
    if any(each.verdict is RuleVerdict.FAIL for each in results):
        raise typer.Exit(1)


def _label(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise UsageError(f"--node-label: expected NAME=VALUE, got {text!r}")
    return name, value


def _documents(path: Path) -> list[Mapping[str, Any]]:
    with explained(path):
        text = read_settings_text(path)
    found = [each for each in parse_documents(text, source=str(path)) if each is not None]
    if not found or not all(isinstance(each, Mapping) for each in found):
        raise UsageError(f"{path}: expected objects in JSON or YAML")
    return found


async def _judged(run: Run) -> tuple[str, list[RuleResult]]:
    with tempfile.TemporaryDirectory(prefix="drakit-") as directory:
        log = run.log or Path(directory) / "driver.log"
        with explained("--driver-log"):
            # Now, so that a path that cannot be written is told before the driver starts.
            log.touch()
        launcher = CommandLauncher(run.command, log, dict(os.environ))
        async with open_testbed(
            launcher, kubeconfig=run.kubeconfig, wishes=run.wishes, timeouts=run.timeouts, hints=run.hints
        ) as bed:
            results: list[RuleResult] = []
            async for each in judge(run.rules, bed):
                _tell_progress(each, len(results) + 1, len(run.rules))
                results.append(each)
            return bed.driver_name, results


def _tell_progress(result: RuleResult, number: int, total: int) -> None:
    """A line per rule for who waits at a terminal; the table comes when all are judged."""
    if sys.stderr.isatty():
        typer.echo(f"{number}/{total} {result.rule}: {result.verdict}", err=True)


def _show(driver: str, results: Sequence[RuleResult], output: ReportFormat) -> None:
    match output:
        case ReportFormat.TABLE:
            print_table(reports.COLUMNS, [reports.row(each) for each in results])
        case ReportFormat.WIDE:
            print_table(reports.WIDE_COLUMNS, [reports.wide_row(each) for each in results])
        case ReportFormat.JSON:
            text = msgspec.json.encode(reports.document(driver, results))
            typer.echo(msgspec.json.format(text, indent=2).decode())
        case ReportFormat.YAML:
            typer.echo(yaml.safe_dump(reports.document(driver, results), sort_keys=False, allow_unicode=True), nl=False)
    counted = ", ".join(f"{number} {verdict}" for verdict, number in reports.counts(results).items())
    typer.echo(f"{driver or 'the driver'}: {counted}", err=True)
