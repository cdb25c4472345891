"""`drakit devices`: what exists, who uses it, what is left.

In:  a live cluster, drakit's or anybody's Kubernetes; or saved objects (`-f`).
Out: a row per device, grouped as asked, and a line of totals in which the partitions of a card count once. Exit code 0;
     1 when a filter leaves nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Annotated, Any

import msgspec
import typer

from drakit.base.gates import FeatureGates
from drakit.cli.flags.access import access_of
from drakit.cli.flags.groups import ReachFlags, with_groups
from drakit.cli.flags.saved import read_saved
from drakit.cli.output.forms import OutputForm, write_document
from drakit.cli.output.tables import print_table
from drakit.client import CLAIMS, CLASSES, NODES, PODS, SLICES, TAINT_RULES, Client, NotServed, Resource
from drakit.client.transport.http import Http
from drakit.explain import ClusterObjects, DeviceHolder, DeviceRow, DeviceState, device_rows, totals

COLUMNS = ("driver", "pool", "device", "node", "state", "used by")
WIDE = (*COLUMNS, "classes", "capacity left", "counters left", "taints", "attributes")
_KINDS: tuple[Resource[Any], ...] = (NODES, SLICES, CLASSES, CLAIMS, PODS, TAINT_RULES)


class GroupBy(StrEnum):
    NODE = "node"
    POOL = "pool"
    CLASS = "class"
    CLAIM = "claim"
    NAMESPACE = "namespace"


@with_groups
def devices(
    reach: ReachFlags,
    files: Annotated[
        list[str] | None, typer.Option("-f", "--filename", help="Saved objects instead of a live cluster; - is stdin.")
    ] = None,
    by: Annotated[GroupBy | None, typer.Option(help="Group the rows, with a line of totals each.")] = None,
    free: Annotated[bool, typer.Option("--free", help="Devices that a claim could get.")] = False,
    used: Annotated[bool, typer.Option("--used", help="Devices that somebody holds.")] = False,
    tainted: Annotated[bool, typer.Option("--tainted", help="Devices with a taint.")] = False,
    unhealthy: Annotated[bool, typer.Option("--unhealthy", help="Devices that a driver reports as unhealthy.")] = False,
    output: Annotated[OutputForm | None, typer.Option("-o", "--output", help="Another form than the table.")] = None,
) -> None:
    """Show the devices of a cluster: who uses them, and what is left."""
    rows = device_rows(_saved(files) if files else asyncio.run(_live(reach)))
    shown = [row for row in rows if _wanted(row, free=free, used=used, tainted=tainted, unhealthy=unhealthy)]
    if output in (OutputForm.JSON, OutputForm.YAML):
        write_document({"devices": msgspec.to_builtins(shown), "totals": msgspec.to_builtins(totals(shown))}, output)
    elif shown:
        for title, group in _groups(shown, by):
            _show(title, group, wide=output is OutputForm.WIDE)
    else:
        typer.echo("no devices" + (" of that kind" if rows else ": no ResourceSlice publishes any"), err=True)
    if not shown:
        raise typer.Exit(1)


def _saved(files: Sequence[str]) -> ClusterObjects:
    gates = FeatureGates.all_on()
    manifests = read_saved(files, gates)
    return ClusterObjects((each.object for each in manifests.objects), gates=gates)


async def _live(reach: ReachFlags) -> ClusterObjects:
    objects: list[Any] = []
    async with Client(Http(access_of(reach))) as client:
        for kind in _KINDS:
            try:
                objects += await client.list(kind)
            except NotServed:
                if kind is not TAINT_RULES:  # the one kind that a cluster may well do without
                    raise
    return ClusterObjects(objects, gates=FeatureGates.all_on())


def _wanted(row: DeviceRow, *, free: bool, used: bool, tainted: bool, unhealthy: bool) -> bool:
    """Filters add up; without any, every device is wanted."""
    asked = (free, used, tainted, unhealthy)
    is_free = row.state in (DeviceState.FREE, DeviceState.SHARED)
    found = (is_free, bool(row.holders), bool(row.taints), not row.healthy)
    return not any(asked) or any(each and there for each, there in zip(asked, found, strict=True))


def _groups(rows: Sequence[DeviceRow], by: GroupBy | None) -> Iterator[tuple[str, list[DeviceRow]]]:
    if by is None:
        yield "", list(rows)
        return
    keys = _KEYS[by]
    names = sorted({name for row in rows for name in keys(row)})
    for name in names:
        yield f"{by.value} {name or '(none)'}", [row for row in rows if name in keys(row)]


_KEYS: dict[GroupBy, Callable[[DeviceRow], set[str]]] = {
    GroupBy.NODE: lambda row: {row.node},
    GroupBy.POOL: lambda row: {f"{row.driver}/{row.pool}"},
    GroupBy.CLASS: lambda row: set(row.classes) or {""},
    GroupBy.CLAIM: lambda row: {f"{each.namespace}/{each.claim}" for each in row.holders} or {""},
    GroupBy.NAMESPACE: lambda row: {each.namespace for each in row.holders} or {""},
}


def _show(title: str, rows: Sequence[DeviceRow], *, wide: bool) -> None:
    if title:
        typer.echo(title)
    columns = WIDE if wide else COLUMNS
    print_table(columns, [_cells(row)[: len(columns)] for row in rows])
    sum_ = totals(rows)
    parts = "" if sum_.cards == sum_.devices else f", published as {sum_.devices} devices that are alternatives in part"
    typer.echo(f"{sum_.cards} in all: {sum_.used} used, {sum_.free} free, {sum_.tainted} tainted{parts}\n")


def _cells(row: DeviceRow) -> tuple[str, ...]:
    state = row.state.value if row.healthy else f"{row.state.value}, unhealthy"
    users = ", ".join(map(_user, row.holders))
    return (
        row.driver,
        row.pool,
        row.device,
        row.node or f"{row.nodes} nodes",
        state,
        users,
        ", ".join(row.classes),
        ", ".join(f"{name}={each.left}/{each.total}" for name, each in row.capacity.items()),
        ", ".join(f"{name}={each.left}/{each.total}" for name, each in row.counters.items()),
        ", ".join(row.taints),
        ", ".join(f"{name}={value}" for name, value in row.attributes.items()),
    )


def _user(holder: DeviceHolder) -> str:
    share = ", ".join(f"{name}={amount}" for name, amount in holder.consumed.items())
    return f"{holder.namespace}/{holder.claim}{' (admin)' if holder.admin else ''}{f' [{share}]' if share else ''}"
