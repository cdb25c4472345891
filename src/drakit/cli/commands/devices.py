"""`drakit devices`: what exists, who uses it, what is left.

In:  a live cluster, drakit's or anybody's Kubernetes; or saved objects, or a snapshot (`-f`).
Out: a row per device, grouped as asked, and a line of totals. Partitions of one card stand together, as alternatives,
     and count once. Exit code 0; 1 when a filter leaves nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Annotated

import msgspec
import typer

from drakit.base.errors import UsageError
from drakit.cli.flags.cluster import SourceFlags, read_cluster
from drakit.cli.flags.groups import ReachFlags, with_groups
from drakit.cli.output.forms import OutputForm, write_document
from drakit.cli.output.screens import clear_screen
from drakit.cli.output.tables import print_table
from drakit.cli.processes.watched import watched
from drakit.explain import Capacity, ClusterObjects, DeviceHolder, DeviceRow, DeviceState, device_rows, totals

COLUMNS = ("driver", "pool", "device", "node", "state", "left", "used by")
WIDE = (*COLUMNS, "classes", "counters left", "taints", "attributes")


class GroupBy(StrEnum):
    NODE = "node"
    POOL = "pool"
    CLASS = "class"
    CLAIM = "claim"
    NAMESPACE = "namespace"


class _Filter(msgspec.Struct, frozen=True):
    """Filters add up; without any, every device is wanted."""

    free: bool
    used: bool
    tainted: bool
    unhealthy: bool
    namespace: str

    def wants(self, row: DeviceRow) -> bool:
        if self.namespace and not any(each.namespace == self.namespace for each in row.holders):
            return False
        asked = (self.free, self.used, self.tainted, self.unhealthy)
        is_free = row.state in (DeviceState.FREE, DeviceState.SHARED)
        found = (is_free, bool(row.holders), bool(row.taints), not row.healthy)
        return not any(asked) or any(each and there for each, there in zip(asked, found, strict=True))


@with_groups
def devices(
    reach: ReachFlags,
    cluster: SourceFlags,
    by: Annotated[GroupBy | None, typer.Option(help="Group the rows, with a line of totals each.")] = None,
    free: Annotated[bool, typer.Option("--free", help="Devices that a claim could get.")] = False,
    used: Annotated[bool, typer.Option("--used", help="Devices that somebody holds.")] = False,
    tainted: Annotated[bool, typer.Option("--tainted", help="Devices with a taint.")] = False,
    unhealthy: Annotated[bool, typer.Option("--unhealthy", help="Devices that a driver reports as unhealthy.")] = False,
    watch: Annotated[bool, typer.Option("-w", "--watch", help="Show it again at every change, until Ctrl-C.")] = False,
    output: Annotated[OutputForm | None, typer.Option("-o", "--output", help="Another form than the table.")] = None,
) -> None:
    """Show the devices of a cluster: who uses them, and what is left."""
    wanted = _Filter(free, used, tainted, unhealthy, cluster.namespace)
    if watch:
        if cluster.files:
            raise UsageError("--watch needs a live cluster: saved objects do not change")
        asyncio.run(_watch(reach, wanted, by, output))
    if not _show_all(read_cluster(cluster, reach), wanted, by, output):
        raise typer.Exit(1)


async def _watch(reach: ReachFlags, wanted: _Filter, by: GroupBy | None, output: OutputForm | None) -> None:
    async for objects in watched(reach):
        clear_screen()
        _show_all(objects, wanted, by, output)


def _show_all(cluster: ClusterObjects, wanted: _Filter, by: GroupBy | None, output: OutputForm | None) -> bool:
    """Whether there was anything to show."""
    rows = device_rows(cluster)
    shown = [row for row in rows if wanted.wants(row)]
    if output in (OutputForm.JSON, OutputForm.YAML):
        write_document({"devices": msgspec.to_builtins(shown), "totals": msgspec.to_builtins(totals(shown))}, output)
    elif shown:
        for title, group in _groups(shown, by):
            _show(title, group, wide=output is OutputForm.WIDE)
    else:
        typer.echo("no devices" + (" of that kind" if rows else ": no ResourceSlice publishes any"), err=True)
    return bool(shown)


def _groups(rows: Sequence[DeviceRow], by: GroupBy | None) -> Iterator[tuple[str, list[DeviceRow]]]:
    if by is None:
        yield "", list(rows)
        return
    keys = _KEYS[by]
    names = sorted({name for row in rows for name in keys(row)})
    for name in names:
        # A device may be in several groups: it can match several classes, and have several holders.
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
    print_table(columns, [_cells(row, mark)[: len(columns)] for row, mark in _marked(rows)])
    sum_ = totals(rows)
    parts = "" if sum_.cards == sum_.devices else f", published as {sum_.devices} devices that are alternatives in part"
    typer.echo(f"{sum_.cards} in all: {sum_.used} used, {sum_.free} free, {sum_.tainted} tainted{parts}\n")


def _marked(rows: Sequence[DeviceRow]) -> Iterator[tuple[DeviceRow, str]]:
    """Rows in the order of their cards. The parts of one card are bracketed: what is taken of one is gone for all."""
    cards: dict[tuple[str, str, str], list[DeviceRow]] = {}
    for row in rows:
        cards.setdefault((row.driver, row.pool, row.card), []).append(row)
    for parts in cards.values():
        for position, row in enumerate(parts):
            last = position == len(parts) - 1
            yield row, "" if len(parts) == 1 else ("┌ " if position == 0 else "└ " if last else "│ ")


def _cells(row: DeviceRow, mark: str) -> tuple[str, ...]:
    state = row.state.value if row.healthy else f"{row.state.value}, unhealthy"
    return (
        row.driver,
        row.pool,
        mark + row.device,
        row.node or f"{row.nodes} nodes",
        state,
        # Of a device that is used whole or not at all, the state says it.
        _left(row) if row.state is DeviceState.SHARED or row.counters else "",
        ", ".join(map(_user, row.holders)),
        ", ".join(row.classes),
        _amounts(row.counters.items()),
        ", ".join(row.taints),
        ", ".join(f"{name}={value}" for name, value in row.attributes.items()),
    )


def _left(row: DeviceRow) -> str:
    """What is left of the capacity of a device that is shared, or of the card that it is a part of."""
    if row.state is DeviceState.SHARED:
        return _amounts(row.capacity.items())
    return _amounts((name.rpartition("/")[2], each) for name, each in row.counters.items())


def _amounts(found: Iterable[tuple[str, Capacity]]) -> str:
    return ", ".join(f"{name} {each.left}/{each.total}" for name, each in found)


def _user(holder: DeviceHolder) -> str:
    share = ", ".join(f"{name}={amount}" for name, amount in holder.consumed.items())
    return f"{holder.namespace}/{holder.claim}{' (admin)' if holder.admin else ''}{f' [{share}]' if share else ''}"
