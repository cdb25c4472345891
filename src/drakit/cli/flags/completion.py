"""What a shell offers for the values of flags and arguments: names from the kubeconfig and from the cluster.

In:  what was typed so far, `--kubeconfig`, `--context` and `--namespace` among it.
Out: names that begin with it. A cluster that does not answer in time has none: nobody wants an error while typing.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from typing import Any

import typer

Completion = Callable[[typer.Context, str], list[str]]
_SECONDS = 2.0


def complete_contexts(context: typer.Context, incomplete: str) -> list[str]:
    from drakit.base.errors import DrakitError
    from drakit.cli.flags.access import kubeconfig_files
    from drakit.client import Kubeconfig

    try:
        found = Kubeconfig(kubeconfig_files(context.params.get("kubeconfig"), os.environ)).contexts()
    except DrakitError:
        return []
    return [each for each in found if each.startswith(incomplete)]


def complete_profiles(_context: typer.Context, incomplete: str) -> list[str]:
    from drakit.drivers import profile_names

    return [each for each in profile_names() if each.startswith(incomplete)]


def names_of(kind: str) -> Completion:
    """The names of a kind's objects, by its constant in `drakit.client`: `PODS`. Of one namespace where it has some."""

    def complete(context: typer.Context, incomplete: str) -> list[str]:
        from drakit.base.errors import DrakitError

        try:
            found = asyncio.run(_names(kind, context.params))
        except (DrakitError, TimeoutError):
            return []
        return sorted(each for each in found if each.startswith(incomplete))

    return complete


async def _names(kind: str, given: Mapping[str, Any]) -> list[str]:
    import drakit.client
    from drakit.cli.flags.access import kubeconfig_files
    from drakit.client.transport.http import Http

    # The imports are above, in the function: most completions need no client, and should not wait for it.
    files = kubeconfig_files(given.get("kubeconfig"), os.environ)
    access = drakit.client.load_kubeconfig(files, given.get("context") or "")
    resource: drakit.client.Resource[Any] = getattr(drakit.client, kind)
    namespace = (given.get("namespace") or access.namespace) if resource.kind.namespaced else ""
    async with asyncio.timeout(_SECONDS), drakit.client.Client(Http(access)) as client:
        return [drakit.client.metadata_of(each).name for each in await client.list(resource, namespace=namespace)]
