"""`drakit device-metadata`: what the devices of this container are, from the files that their drivers put there.

In:  the directory of the container; a claim and a request, if only those are wanted.
Out: a table, or JSON for programs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from drakit.api import DeviceAttribute, to_plain
from drakit.cli.flags.files import explained
from drakit.driverkit.metadata import ROOT, MetadataFile, all_metadata


def device_metadata(
    directory: Annotated[Path, typer.Option(help="Where the files are.")] = ROOT,
    claim: Annotated[str, typer.Option(help="Only this claim, as the pod calls it.")] = "",
    request: Annotated[str, typer.Option(help="Only this request.")] = "",
    output: Annotated[str, typer.Option("-o", "--output", help="table or json.")] = "table",
) -> None:
    """Show the metadata of the devices of this container."""
    if output not in ("table", "json"):
        raise typer.BadParameter("expected table or json", param_hint="--output")
    with explained(directory):
        found = list(all_metadata(directory, claim=claim, request=request))
    if output == "json":
        typer.echo(msgspec.json.encode([to_plain(each.content) for each in found]))
    elif found:
        Console().print(_table(found))
    if not found:
        typer.echo(f"no device metadata in {directory}", err=True)
        raise typer.Exit(1)


def _table(found: list[MetadataFile]) -> Table:
    table = Table("CLAIM", "REQUEST", "DRIVER", "POOL", "DEVICE", "ATTRIBUTES", box=None)
    for each in found:
        content = each.content
        claim = content.pod_claim_name or content.metadata.name
        for request in content.requests:
            for device in request.devices:
                attributes = "\n".join(f"{name}={_value(value)}" for name, value in device.attributes.items())
                table.add_row(claim, request.name, device.driver, device.pool, device.name, attributes)
    return table


def _value(attribute: DeviceAttribute) -> str:
    plain = to_plain(attribute)
    return ", ".join(str(value) for value in plain.values())
