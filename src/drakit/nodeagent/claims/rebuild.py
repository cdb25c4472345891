"""Records of claims after the checkpoint was damaged, from the pods that are there.

In:  pods that have something running here; their claims as the server has them.
Out: records without devices. Drivers are asked again when a device is needed, and told to unprepare at the end.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from drakit.api import Pod
from drakit.api.podclaims import claim_names, is_reserved_for_pod
from drakit.base.errors import DrakitError
from drakit.client import CLAIMS, Client
from drakit.nodeagent.claims.admission import drivers_of
from drakit.nodeagent.claims.records import ClaimRecord, ClaimRecords

log = logging.getLogger("drakit.nodeagent")


async def rebuild(client: Client, records: ClaimRecords, pods: Iterable[Pod]) -> None:
    """Add what the pods use. A claim that cannot be read is left out, and said so."""
    for pod in pods:
        for name in dict.fromkeys(claim_names(pod).values()):
            await _add(client, records, pod, name)


async def _add(client: Client, records: ClaimRecords, pod: Pod, name: str) -> None:
    namespace = pod.metadata.namespace
    try:
        claim = await client.get(CLAIMS, name, namespace=namespace)
    except DrakitError as error:
        log.warning("claim %s/%s of pod %s is not known any more: %s", namespace, name, pod.metadata.name, error)
        return
    if claim.status.allocation is None or not is_reserved_for_pod(claim, pod):
        return
    record = records.find(namespace, name)
    if record is None or record.uid != claim.metadata.uid:
        drivers = dict.fromkeys(drivers_of(claim))
        record = ClaimRecord(claim.metadata.uid, name, namespace, drivers={**drivers}, rebuilt=True)
        records.add(record)
    record.pods[pod.metadata.uid] = None
