"""The cluster that a command is about: live, by kubeconfig; or saved objects and snapshots, by `-f`.

In:  flags.
Out: its objects. One line and an exit code say what is wrong: 2 for bad input and missing rights, 3 for no cluster.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any

import typer

from drakit.base.errors import Unavailable, UsageError
from drakit.base.gates import FeatureGates
from drakit.cli.flags import options
from drakit.cli.flags.access import access_of, kubeconfig_files
from drakit.cli.flags.groups import FlagGroup, ReachFlags
from drakit.cli.flags.saved import read_saved
from drakit.client import (
    CLAIMS,
    CLASSES,
    NODES,
    POD_GROUPS,
    PODS,
    SLICES,
    TAINT_RULES,
    TEMPLATES,
    Access,
    Client,
    NotServed,
    Resource,
)
from drakit.client.transport.http import Http
from drakit.explain import ClusterObjects


class LateTemplates(Mapping[str, Any]):
    """The device profiles as nodes, imported when somebody asks: most commands end before."""

    @cached_property
    def _all(self) -> Mapping[str, Any]:
        from drakit.drivers import PROFILE_TEMPLATES

        return PROFILE_TEMPLATES

    def __getitem__(self, name: str) -> Any:
        return self._all[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


KINDS: tuple[Resource[Any], ...] = (NODES, SLICES, CLASSES, CLAIMS, PODS, TEMPLATES, TAINT_RULES, POD_GROUPS)
_OPTIONAL = (TAINT_RULES, POD_GROUPS)
"""Kinds that a cluster may well do without."""

Files = Annotated[
    list[str] | None, typer.Option("-f", "--filename", help="Saved objects or a snapshot instead; - is stdin.")
]


class SourceFlags(FlagGroup, frozen=True, kw_only=True):
    """Which cluster. `read_cluster` reads it."""

    files: Files = None
    namespace: options.Namespace = ""


def read_cluster(flags: SourceFlags, reach: ReachFlags) -> ClusterObjects:
    """Raise DrakitError, or exit with 2 when anything is wrong with the files."""
    gates = FeatureGates.all_on()
    if flags.files:
        if reach.kubeconfig or reach.context or reach.master:
            raise UsageError("-f reads saved objects: --kubeconfig, --context and --master do not go with it")
        return cluster_of(each.object for each in read_saved(flags.files, gates).objects)
    return asyncio.run(_live(reach))


def cluster_of(objects: Iterable[Any]) -> ClusterObjects:
    """With every gate on, as nobody can know those of a server; and with the device profiles as nodes to add."""
    return ClusterObjects(objects, gates=FeatureGates.all_on(), templates=LateTemplates())


def namespace_of(flags: SourceFlags, reach: ReachFlags) -> str:
    """The one that was given, else that of the context; `default` for saved objects."""
    if flags.namespace or flags.files:
        return flags.namespace or "default"
    return live_access(reach).namespace or "default"


def live_access(reach: ReachFlags) -> Access:
    """Raise Unavailable when nothing says where a cluster would be, UsageError for flags that are wrong."""
    named = reach.kubeconfig or reach.context or reach.master or os.environ.get("KUBERNETES_SERVICE_HOST")
    files = kubeconfig_files(None, os.environ)
    if not named and not any(each.exists() for each in files):
        where = ", ".join(map(str, files))
        raise Unavailable(
            f"no cluster: there is no kubeconfig ({where}); `drakit up` starts a cluster, -f reads a file"
        )
    return access_of(reach)


async def _live(reach: ReachFlags) -> ClusterObjects:
    async with Client(Http(live_access(reach))) as client:
        return cluster_of(await list_objects(client, KINDS))


async def list_objects(client: Client, kinds: Sequence[Resource[Any]]) -> list[Any]:
    return [each for kind in kinds for each in await _listed(client, kind) or ()]


async def served_kinds(client: Client, kinds: Sequence[Resource[Any]]) -> list[Resource[Any]]:
    """Those that the server has. Raise DrakitError when one is missing without which nothing can be said."""
    return [kind for kind in kinds if await _listed(client, kind) is not None]


async def _listed(client: Client, kind: Resource[Any]) -> list[Any] | None:
    try:
        return list(await client.list(kind))
    except NotServed:
        # An older server may lack these kinds; then there are no such objects.
        if kind not in _OPTIONAL:
            raise
        return None
