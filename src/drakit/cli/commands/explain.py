"""`drakit explain pod|claim|podgroup NAME`: why it waits, what would make it fit; or where it runs, with which devices.

In:  a live cluster, drakit's or anybody's Kubernetes; or saved objects, or a snapshot (`-f`).
Out: a sentence, nodes by reason, the way of devices to each request, who holds what is missing, what would help. Exit
     code 0 when it runs or could; 1 when it cannot; 2 when there is no such object; 3 without a cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated

import msgspec
import typer

from drakit.base.errors import UsageError
from drakit.cli.flags.cluster import SourceFlags, namespace_of, read_cluster
from drakit.cli.flags.completion import names_of
from drakit.cli.flags.groups import ReachFlags, with_groups
from drakit.cli.output.forms import OutputForm, write_document
from drakit.cli.processes.watched import watched
from drakit.explain import (
    ClusterObjects,
    ObjectExplanation,
    Standing,
    explain_claim,
    explain_pod,
    explain_podgroup,
)
from drakit.explain.lines import explanation_lines

Explain = Callable[..., ObjectExplanation]
_KINDS: dict[str, Explain] = {
    **dict.fromkeys(("pod", "pods", "po"), explain_pod),
    **dict.fromkeys(("claim", "claims", "resourceclaim", "resourceclaims"), explain_claim),
    **dict.fromkeys(("podgroup", "podgroups", "pg"), explain_podgroup),
}
_STUCK = (Standing.PENDING, Standing.WAITING)


def _complete_names(context: typer.Context, incomplete: str) -> list[str]:
    kind = str(context.params.get("kind") or "")
    constants = {explain_pod: "PODS", explain_claim: "CLAIMS", explain_podgroup: "POD_GROUPS"}
    found = _KINDS.get(kind)
    return names_of(constants[found])(context, incomplete) if found is not None else []


@with_groups
def explain(
    kind: Annotated[str, typer.Argument(help="pod, claim or podgroup; or all of it: pod/NAME.")],
    reach: ReachFlags,
    cluster: SourceFlags,
    name: Annotated[str, typer.Argument(help="Its name.", autocompletion=_complete_names)] = "",
    watch: Annotated[bool, typer.Option("-w", "--watch", help="Wait until the answer changes, and tell it.")] = False,
    output: Annotated[OutputForm | None, typer.Option("-o", "--output", help="json, yaml or wide.")] = None,
) -> None:
    """Say why a pod, claim or pod group waits, and what would help; or which devices it has."""
    kind, _, after = kind.partition("/")
    function = _KINDS.get(kind.lower())
    if function is None:
        raise UsageError(f'cannot explain "{kind}": it is pod, claim or podgroup')
    if bool(name) == bool(after):
        raise UsageError(f"the name of one {kind} is needed: drakit explain {kind} NAME")
    if watch and cluster.files:
        raise UsageError("--watch needs a live cluster: saved objects do not change")
    namespace = namespace_of(cluster, reach)
    if watch:
        found = asyncio.run(_watch(function, name or after, namespace, reach, output))
    else:
        found = function(read_cluster(cluster, reach), name or after, namespace)
        _show(found, output)
    if found.standing in _STUCK:
        raise typer.Exit(1)


async def _watch(
    function: Explain, name: str, namespace: str, reach: ReachFlags, output: OutputForm | None
) -> ObjectExplanation:
    """The answer now, and the next one that differs."""
    first: ObjectExplanation | None = None
    async for objects in watched(reach):
        # In a thread: the watches go on while a large cluster is worked through.
        found = await asyncio.to_thread(_answer, function, objects, name, namespace)
        if first is None or (found.standing, found.verdict) != (first.standing, first.verdict):
            _show(found, output)
            if first is not None:
                return found
            first = found
    raise UsageError("the watch ended")


def _answer(function: Explain, objects: ClusterObjects, name: str, namespace: str) -> ObjectExplanation:
    return function(objects, name, namespace)


def _show(found: ObjectExplanation, output: OutputForm | None) -> None:
    if output in (OutputForm.JSON, OutputForm.YAML):
        write_document(msgspec.to_builtins(found), output)
        return
    for line in explanation_lines(found, wide=output is OutputForm.WIDE):
        typer.echo(line)
