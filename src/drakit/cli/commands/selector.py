"""`drakit selector 'EXPR'`: try a CEL device selector on every device. Without an expression, one after the other.

In:  an expression; the devices of a live cluster, of saved objects, or of a snapshot (`-f`).
Out: where it is wrong, with a caret; else what it says to each device and why not, its cost, and the attributes that
     there are. Exit code 0 when a device matches, 1 when none does, 2 when the expression is wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Annotated

import msgspec
import typer

from drakit.cli.flags.cluster import SourceFlags, read_cluster
from drakit.cli.flags.completion import names_of
from drakit.cli.flags.groups import ReachFlags, with_groups
from drakit.cli.output.forms import OutputForm, write_document
from drakit.cli.output.prompts import prompted
from drakit.cli.output.tables import print_table
from drakit.explain import SelectedDevice, SelectorLab, SelectorTrial

_FEW = 6
_HELP = "An expression, or :attributes, :help, :quit. Tab completes names."
_WORDS = (
    "device.driver", "device.allowMultipleAllocations", "device.attributes", "device.capacity", "quantity(", "semver(",
    "has(", "cel.bind(", ":attributes", ":help", ":quit",
)  # fmt: skip


@with_groups
def selector(
    reach: ReachFlags,
    cluster: SourceFlags,
    expression: Annotated[str, typer.Argument(help="The expression; without it, a prompt with completion.")] = "",
    class_: Annotated[
        str, typer.Option("--class", help="Only devices of this class.", autocompletion=names_of("CLASSES"))
    ] = "",
    device: Annotated[
        list[str] | None,
        typer.Option(help="Only this device, with the value of each part: [[DRIVER/]POOL/]NAME."),
    ] = None,
    output: Annotated[OutputForm | None, typer.Option("-o", "--output", help="json, yaml or wide.")] = None,
) -> None:
    """Try a CEL device selector on the devices of a cluster."""
    lab = SelectorLab(read_cluster(cluster, reach), device_class=class_, devices=device or ())
    if not expression:
        _converse(lab)
        return
    found = lab.attempt(expression)
    if output in (OutputForm.JSON, OutputForm.YAML):
        write_document(msgspec.to_builtins(found), output)
    else:
        _show(found, wide=output is OutputForm.WIDE)
    if found.faults:
        raise typer.Exit(2)
    if not found.matching:
        raise typer.Exit(1)


def _converse(lab: SelectorLab) -> None:
    attributes = lab.attributes()
    if sys.stdin.isatty():
        typer.echo(_HELP)
    for line in prompted("selector> ", (*attributes, *_WORDS)):
        if line == ":quit":
            return
        if line == ":attributes":
            for each in _attributes(attributes, wide=True):
                typer.echo(each)
        elif line.startswith(":"):
            typer.echo(_HELP)
        elif line:
            _show(lab.attempt(line), wide=False)


def _show(found: SelectorTrial, *, wide: bool) -> None:
    for fault in found.faults:
        place = f"line {fault.line}, column {fault.column}: " if fault.line else ""
        typer.echo(f"error: {place}{fault.message}", err=True)
        if fault.snippet:
            typer.echo(fault.snippet, err=True)
    if not found.faults:
        _show_devices(found)
    if wide or found.faults or not found.matching:
        typer.echo("attributes that there are:")
        for line in _attributes(found.attributes, wide=wide):
            typer.echo(f"  {line}")


def _show_devices(found: SelectorTrial) -> None:
    typer.echo(f"{found.matching} of {len(found.devices)} devices match; it costs at most {found.max_cost}")
    if found.devices:
        print_table(("device", "matches", "why not"), [_row(each) for each in found.devices])
    for each in found.devices:
        if each.values:
            typer.echo(f"\n{each.device}" + (f" (cost {each.cost})" if each.cost is not None else ""))
            for part in each.values:
                typer.echo(f"  {'  ' * part.depth}{part.text} = {part.value}")


def _row(each: SelectedDevice) -> tuple[str, str, str]:
    return each.device, "yes" if each.matches else "error" if each.error else "no", each.error or each.why


def _attributes(found: Mapping[str, tuple[str, ...]], *, wide: bool) -> Iterator[str]:
    for path, values in found.items():
        shown = values if wide else values[:_FEW]
        more = f", … {len(values) - len(shown)} more" if len(shown) < len(values) else ""
        yield f"{path}: {', '.join(shown)}{more}"
