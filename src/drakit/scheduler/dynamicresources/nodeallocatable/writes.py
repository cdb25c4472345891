"""Keep in the pod's status what its claims take of the node, before the pod is bound; take it back when it is not.

In:  a pod and the statuses that were worked out for its node.
Out: one patch of the pod's status. Scheduler and node agent rebuild their ledgers from it.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any

from drakit.api import Pod, to_plain
from drakit.base.errors import DrakitError
from drakit.client import Client, NotFound
from drakit.scheduler.dynamicresources.nodeallocatable.statuses import Statuses

log = logging.getLogger("drakit.scheduler")

FIELD = "nodeAllocatableResourceClaimStatuses"


def status_patch(statuses: Statuses) -> dict[str, Any]:
    """As a merge patch of the pod's status; none takes the field away."""
    return {FIELD: [to_plain(each) for each in statuses] or None}


async def write_statuses(client: Client, pod: Pod, statuses: Statuses) -> None:
    """Raise DrakitError when they could not be written."""
    await client.patch_status(pod, status_patch(statuses))


async def clear_statuses(client: Client, pod: Pod) -> None:
    """Never fails: what is left is overwritten by the next attempt."""
    try:
        with suppress(NotFound):
            await client.patch_status(pod, status_patch(()))
    except DrakitError as error:
        name = f"{pod.metadata.namespace}/{pod.metadata.name}"
        log.warning("failed to clear %s of pod %s: %s", FIELD, name, error)
