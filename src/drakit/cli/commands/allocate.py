"""`drakit allocate`: give claims their devices, or say why that is not possible.

In:  files with slices, classes, claims, nodes, taint rules and pods. Claims that have an allocation are in use; all
     others are allocated together, as the claims of one pod, with those that the scheduler would make for pods.
Out: the allocations of the first node that has all devices, as a table, YAML or JSON; or what is in the way.
     Exit code 0 when allocated, 1 when not, 2 when the input is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec
import typer

from drakit.allocator import (
    Allocated,
    Allocation,
    AllocationError,
    Inventory,
    NodeError,
    OutOfTime,
    Reasons,
    Unsatisfiable,
    tell,
)
from drakit.api import ResourceClaim, ResourceClaimTemplate, ResourceSlice
from drakit.api.codec.documents import to_wire
from drakit.base.clock import RealClock
from drakit.base.gates import FeatureGates
from drakit.cli.flags.saved import read_saved
from drakit.cli.output.forms import OutputForm, write_document
from drakit.cli.output.progress import tracked
from drakit.cli.output.tables import print_table
from drakit.library import candidate_nodes, inventory_of, trial_of, try_nodes
from drakit.manifests import Manifests, name_of

COLUMNS = ("claim", "request", "driver", "pool", "device", "node")
WIDE = (*COLUMNS, "share", "consumed", "admin", "tolerations", "config")


def allocate(
    files: Annotated[
        list[str],
        typer.Option("-f", "--filename", help="A YAML or JSON file, a folder of them, or - for standard input."),
    ],
    node: Annotated[str | None, typer.Option("--node", help="The only node to try.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say why a node does not fit, device by device.")] = False,
    output: Annotated[OutputForm | None, typer.Option("-o", "--output", help="Another form than the table.")] = None,
    timeout: Annotated[
        float, typer.Option(min=0, help="Seconds that all nodes together may take; 0 is no limit.")
    ] = 60.0,
    feature_gates: Annotated[
        str | None,
        typer.Option(
            "--feature-gates",
            help="Name=bool,… on top of the defaults of Kubernetes v1.36; without it every gate is on.",
        ),
    ] = None,
) -> None:
    """Allocate the claims of the files on a node, all together, or say why that is not possible.

    Pods without a node that ask for an extended resource of a class get a claim for it. What devices take of a node's
    cpu and memory is counted, with what pods request, where the files tell what the node has.
    """
    gates = FeatureGates.all_on() if feature_gates is None else FeatureGates.parse(feature_gates)
    manifests = read_saved(files, gates)
    inventory = inventory_of(manifests, gates)
    trial = trial_of(manifests, inventory, expired=_deadline(timeout))
    if not trial:
        typer.echo(f"nothing to allocate: {_nothing(manifests)}", err=True)
        return
    nodes = _nodes(inventory, manifests, node)
    tried = try_nodes(trial, tracked(nodes, "trying nodes"), explain=explain)
    # The search stops at the first node that fits, so only the last one can be a success.
    found = tried[-1]
    if isinstance(found, Allocated):
        _show_allocated(found, trial.claims_on(found.node), output)
        return
    _show_failed(tried, output)
    raise typer.Exit(1)


def _deadline(seconds: float) -> Callable[[], bool] | None:
    if not seconds:
        return None
    clock = RealClock()
    end = clock.monotonic() + seconds
    return lambda: clock.monotonic() >= end


def _nothing(manifests: Manifests) -> str:
    """Why there is no claim to allocate."""
    if manifests.of(ResourceClaim):
        return "every claim has an allocation"
    templates = manifests.of(ResourceClaimTemplate)
    if templates:
        named = ", ".join(each.metadata.name for each in templates)
        return f"the files have no ResourceClaim, only templates ({named}), of which pods get their claims"
    return "the files have no ResourceClaim"


def _nodes(inventory: Inventory, manifests: Manifests, node: str | None) -> list[str]:
    """The nodes to try, by name: those that are given, or else those that slices name."""
    homes = {each.spec.node_name for each in manifests.of(ResourceSlice) if each.spec.node_name}
    known = candidate_nodes(inventory, manifests)
    if node is not None:
        if known and node not in known and node not in homes:
            typer.echo(f"error: --node {node}: no such node in the files; there are {', '.join(known)}", err=True)
            raise typer.Exit(2)
        return [node]
    if not known:
        typer.echo("error: no nodes: the files have no Node, and no slice names one; use --node", err=True)
        raise typer.Exit(2)
    return known


def _show_allocated(found: Allocated, claims: Sequence[ResourceClaim], output: OutputForm | None) -> None:
    if output in (OutputForm.YAML, OutputForm.JSON):
        items = [
            to_wire(msgspec.structs.replace(claim, status=msgspec.structs.replace(claim.status, allocation=allocation)))
            for claim, allocation in zip(claims, found.allocations, strict=True)
        ]
        write_document({"apiVersion": "v1", "kind": "List", "items": items}, output)
        return
    rows = [
        row for claim, number in zip(claims, range(len(claims)), strict=True) for row in _rows(claim, found, number)
    ]
    columns = WIDE if output is OutputForm.WIDE else COLUMNS
    print_table(columns, [row[: len(columns)] for row in rows])


def _rows(claim: ResourceClaim, found: Allocated, number: int) -> list[tuple[str, ...]]:
    allocation = found.allocations[number]
    name = f"{claim.metadata.namespace}/{name_of(claim.metadata)}"
    config = ", ".join(each.source for each in allocation.devices.config)
    return [
        (
            name,
            each.request,
            each.driver,
            each.pool,
            each.device,
            found.node,
            each.share_id or "",
            ", ".join(f"{capacity}={amount}" for capacity, amount in each.consumed_capacity.items()),
            "yes" if each.admin_access else "",
            ", ".join(f"{toleration.key or '*'}:{toleration.effect or '*'}" for toleration in each.tolerations),
            config,
        )
        for each in allocation.devices.results
    ]


def _show_failed(tried: Sequence[Allocation], output: OutputForm | None) -> None:
    if output in (OutputForm.YAML, OutputForm.JSON):
        write_document({"allocated": False, "nodes": [_plain(each) for each in tried]}, output)
        return
    last = tried[-1]
    if isinstance(last, AllocationError):
        typer.echo(f"error: {last.message}", err=True)
        return
    typer.echo(f"cannot allocate all claims on any of {len(tried)} node{'s' * (len(tried) != 1)}")
    for each in tried:
        typer.echo(f"node {each.node}: {_summary(each)}")
        reasons = getattr(each, "reasons", None)
        for line in tell(reasons) if reasons else ():
            typer.echo(f"  {line}")


def _summary(each: Allocation) -> str:
    match each:
        case NodeError() | AllocationError():
            return each.message
        case OutOfTime():
            return "the time given (--timeout) was too short"
        case _:
            return "not all devices are available"


def _plain(each: Allocation) -> dict[str, Any]:
    kinds = {Unsatisfiable: "none", NodeError: "node-error", AllocationError: "error", OutOfTime: "out-of-time"}
    plain: dict[str, Any] = {"node": each.node, "outcome": kinds[type(each)], "message": _summary(each)}
    reasons: Reasons | None = getattr(each, "reasons", None)
    if reasons:
        plain["reasons"] = msgspec.to_builtins(reasons)
    return plain
