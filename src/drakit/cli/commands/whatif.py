"""`drakit whatif`: the cluster with changes, and what the scheduler would make of it.

In:  a live cluster, or saved objects, or a snapshot (`-f`); changes by flags.
Out: pods placed, in order, with their devices; pods that stay pending, and why; how much is used before and after. Exit
     code 0 when every pod fits, 1 when some stay pending.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import msgspec
import typer

from drakit.api import to_wire
from drakit.api.objects.apps import Deployment
from drakit.api.objects.cluster import ReplicaSet
from drakit.base.errors import UsageError
from drakit.base.gates import FeatureGates
from drakit.cli.flags.cluster import SourceFlags, read_cluster
from drakit.cli.flags.completion import names_of
from drakit.cli.flags.groups import ReachFlags, with_groups
from drakit.cli.flags.nodetemplates import read_template
from drakit.cli.flags.saved import read_saved
from drakit.cli.output.forms import OutputForm, write_document
from drakit.cli.output.progress import tracked
from drakit.cli.output.tables import print_table
from drakit.explain import Utilisation, WhatIf, WhatIfAnswer, what_if
from drakit.manifests import Manifest

Names = list[str] | None
COLUMNS = ("#", "pod", "node", "was on", "devices")


@with_groups
def whatif(
    reach: ReachFlags,
    cluster: SourceFlags,
    add_node: Annotated[
        Names, typer.Option(help="TEMPLATE=N: N nodes like a node of the cluster, a device profile, or a file.")
    ] = None,
    remove_node: Annotated[Names, typer.Option(help="A node that goes.", autocompletion=names_of("NODES"))] = None,
    drain: Annotated[
        Names, typer.Option(help="A node whose pods go elsewhere.", autocompletion=names_of("NODES"))
    ] = None,
    taint: Annotated[
        Names, typer.Option(help="DEVICE[=KEY:EFFECT]: driver/pool/device; NoExecute if not said.")
    ] = None,
    evict: Annotated[Names, typer.Option(help="A pod that goes for good: [NAMESPACE/]NAME.")] = None,
    pods: Annotated[Names, typer.Option(help="A file with further pods, deployments, claims and templates.")] = None,
    class_: Annotated[
        Names, typer.Option("--class", help="A file with classes, in the place of those there are.")
    ] = None,
    template: Annotated[
        Names, typer.Option(help="A file with claim templates, in the place of those there are.")
    ] = None,
    smallest: Annotated[
        str, typer.Option(help="TEMPLATE: the fewest nodes of that kind with which everything fits.")
    ] = "",
    output: Annotated[OutputForm | None, typer.Option("-o", "--output", help="json, yaml or wide.")] = None,
) -> None:
    """Say what would become of pods if the cluster were otherwise. Nothing is changed."""
    objects = read_cluster(cluster, reach)
    added = dict(_counted(each) for each in add_node or ())
    kinds = [*added, *([smallest] if smallest else [])]
    question = WhatIf(
        add_nodes=added,
        templates={name: documents for name in kinds if (documents := read_template(objects, name))},
        remove_nodes=tuple(remove_node or ()),
        drain=tuple(drain or ()),
        taint=tuple(taint or ()),
        evict=tuple(each if "/" in each else f"{cluster.namespace or 'default'}/{each}" for each in evict or ()),
        put=tuple(_documents([*(pods or ()), *(class_ or ()), *(template or ())])),
        smallest=smallest,
    )
    answer = what_if(objects, question, progress=tracked)
    if output in (OutputForm.JSON, OutputForm.YAML):
        write_document(msgspec.to_builtins(answer), output)
    else:
        _show(answer, smallest, wide=output is OutputForm.WIDE)
    if answer.pending:
        raise typer.Exit(1)


def _counted(text: str) -> tuple[str, int]:
    name, sign, number = text.rpartition("=")
    if not sign:
        return text, 1
    if not number.isdecimal() or not name:
        raise UsageError(f"--add-node {text}: expected TEMPLATE=N")
    return name, int(number)


def _documents(paths: Sequence[str]) -> Iterable[Mapping[str, Any]]:
    for path in paths:
        for each in read_saved([path], FeatureGates.all_on()).objects:
            yield from _replicas(each)


def _replicas(each: Manifest) -> Iterable[Mapping[str, Any]]:
    """Pods for objects that stand for some; everything else as it is, in its namespace."""
    view = each.view
    document = each.object.document if hasattr(each.object, "document") else to_wire(view)
    if not isinstance(view, Deployment | ReplicaSet):
        yield document
        return
    template = document["spec"]["template"]
    replicas = document["spec"].get("replicas")
    # The default of replicas is 1; 0 is a number like any other.
    for number in range(1 if replicas is None else replicas):
        metadata = {**template.get("metadata", {}), "name": f"{view.metadata.name}-{number}"}
        metadata["namespace"] = view.metadata.namespace
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def _show(found: WhatIfAnswer, smallest: str, *, wide: bool) -> None:
    if found.needed is not None:
        more = f"; {len(found.hopeless)} fit on no number of them" if found.hopeless else ""
        typer.echo(f"{found.needed} more like {smallest} are enough for everything that can fit{more}\n")
    if found.placed:
        rows = [
            (str(each.order), f"{each.namespace}/{each.name}", each.node, each.moved, _devices(each.devices, wide=wide))
            for each in found.placed
        ]
        print_table(COLUMNS, rows)
        typer.echo("")
    for each in found.pending:
        where = f" (was on {each.moved})" if each.moved else ""
        typer.echo(f"{each.namespace}/{each.name} stays pending{where}: {each.reason}")
    if found.pending:
        typer.echo("")
    typer.echo(f"{len(found.placed)} placed, {len(found.pending)} pending")
    print_table(("", "before", "after"), list(_compared(found.before, found.after)))


def _devices(names: Sequence[str], *, wide: bool) -> str:
    return ", ".join(name if wide else name.rpartition("/")[2] for name in names)


def _compared(before: Utilisation, after: Utilisation) -> Iterable[tuple[str, str, str]]:
    yield "nodes", str(before.nodes), str(after.nodes)
    yield "devices used", f"{before.used}/{before.devices}", f"{after.used}/{after.devices}"
    for driver in sorted({*before.drivers, *after.drivers}):
        yield f"  {driver}", before.drivers.get(driver, "0/0"), after.drivers.get(driver, "0/0")
    yield "most free on one node", str(before.largest), str(after.largest)
    yield "fragmentation", f"{before.fragmentation:.0%}", f"{after.fragmentation:.0%}"
    for name in before.requested:
        yield f"{name} requested", f"{before.requested[name]:.0%}", f"{after.requested.get(name, 0):.0%}"
