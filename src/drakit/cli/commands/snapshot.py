"""`drakit snapshot`: everything that a decision of the scheduler depends on, in one file.

In:  a live cluster; the scheduler's own state, where it is drakit's.
Out: a file that `-f` of all tools reads: a bug report that can be replayed. Secrets and tokens are left out.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from drakit.api import Partial, to_wire
from drakit.api.text.times import format_time
from drakit.api.text.yamldump import dump_yaml
from drakit.base.errors import DrakitError, Retryable, Unavailable, UsageError
from drakit.cli.flags.access import access_of
from drakit.cli.flags.cluster import KINDS, list_objects, live_access
from drakit.cli.flags.files import explained
from drakit.cli.flags.groups import ReachFlags, with_groups
from drakit.cli.output.forms import OutputForm
from drakit.cli.output.masks import NameMask, without_secrets
from drakit.cli.processes.pages import SCHEDULER_STATE
from drakit.client import Client, Forbidden, NotFound, NotServed
from drakit.client.transport.http import Http
from drakit.manifests.snapshots import API_VERSION, KIND


@with_groups
def snapshot(
    reach: ReachFlags,
    file: Annotated[Path | None, typer.Argument(help="Where to write it; standard output without it.")] = None,
    mask: Annotated[bool, typer.Option("--mask", help="Other names for nodes, namespaces, pods and claims.")] = False,
    scheduler: Annotated[
        str, typer.Option(help="Where drakit's scheduler shows itself (http://HOST:PORT), if it runs by itself.")
    ] = "",
    output: Annotated[OutputForm, typer.Option("-o", "--output", help="yaml or json.")] = OutputForm.YAML,
) -> None:
    """Save what decisions depend on: objects, and the scheduler's own state. All tools read it by -f."""
    if output is OutputForm.WIDE:
        raise UsageError("-o wide: a snapshot is yaml or json")
    document = asyncio.run(_take(reach, scheduler))
    if mask:
        document = _masked(document)
    text = dump_yaml(document) if output is OutputForm.YAML else msgspec.json.encode(document).decode() + "\n"
    if file is None:
        sys.stdout.write(text)
        return
    with explained("the snapshot cannot be written"):
        file.write_text(text)
    typer.echo(f"{len(document['items'])} objects{_state_words(document)} in {file}", err=True)


async def _take(reach: ReachFlags, scheduler: str) -> dict[str, Any]:
    async with Client(Http(live_access(reach))) as client:
        # The state first: what lands while objects are listed is then in the objects, and counts once.
        state = await (_state_at(scheduler) if scheduler else _state(client))
        objects = await list_objects(client, KINDS)
        version = await client.document("/version")
        now = format_time(client.clock.now())
    items = [dict(each.document) if isinstance(each, Partial) else to_wire(each) for each in objects]
    document = {"apiVersion": API_VERSION, "kind": KIND, "takenAt": now, "server": version.get("gitVersion", "")}
    return {**document, **({"scheduler": state} if state else {}), "items": [without_secrets(each) for each in items]}


async def _state(client: Client) -> dict[str, Any] | None:
    """Of a scheduler in the server's own process, as `drakit up` has it; other servers have none."""
    try:
        return await client.document(SCHEDULER_STATE)
    except (NotFound, NotServed, Forbidden):
        return None


async def _state_at(address: str) -> dict[str, Any]:
    access = access_of(ReachFlags(master=address))
    try:
        async with Client(Http(access)) as client:
            return await client.document(SCHEDULER_STATE)
    except Retryable as error:
        raise Unavailable(f"--scheduler {address}: {error}") from error
    except DrakitError as error:
        raise UsageError(f"--scheduler {address}: this is no scheduler of drakit ({error})") from error


def _masked(document: dict[str, Any]) -> dict[str, Any]:
    mask = NameMask(document["items"])
    state = {"scheduler": mask.apply(document["scheduler"])} if "scheduler" in document else {}
    return {**document, **state, "items": [mask.apply(each) for each in document["items"]]}


def _state_words(document: dict[str, Any]) -> str:
    return " and the scheduler's state" if "scheduler" in document else ""
