"""Which devices a container gets: those of the claims and requests that it names, and no others.

In:  a pod, one of its containers, the records of claims.
Out: CDI ids in order, for the runtime; devices per claim, for status and PodResources.

ClaimUnknown    (Retryable) a claim that the container needs is not on record: it was never prepared here
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from drakit.api import Container, Pod
from drakit.api.podclaims import claim_names
from drakit.base.errors import Retryable
from drakit.nodeagent.claims.records import ClaimRecord, ClaimRecords
from drakit.nodeagent.plugins.contract import DeviceAnswer


class ClaimUnknown(Retryable):
    """No record of a claim that is needed."""


@dataclass(frozen=True, slots=True)
class ClaimUse:
    """One use of a claim by a container. `entry` is the pod's name for it, empty for extended resources."""

    claim: str
    entry: str
    request: str

    def devices(self, record: ClaimRecord) -> Iterator[tuple[str, DeviceAnswer]]:
        return record.devices(self.request)


def uses(pod: Pod, container: Container, *, extended: bool = True) -> Iterator[ClaimUse]:
    """In the container's order; what the mappings of extended resources give comes last."""
    names = claim_names(pod)
    for each in container.resources.claims:
        if each.name in names:
            yield ClaimUse(names[each.name], each.name, each.request)
    status = pod.status.extended_resource_claim_status
    if status is None or not extended:
        return
    asked = container.resources.requests.keys() | container.resources.limits.keys()
    for mapping in status.request_mappings:
        if mapping.container_name == container.name and mapping.resource_name in asked:
            yield ClaimUse(status.resource_claim_name, "", mapping.request_name)


def cdi_ids(records: ClaimRecords, pod: Pod, container: Container, *, extended: bool = True) -> list[str]:
    """The CDI ids in order. An id that occurs twice stays twice. Raise ClaimUnknown."""
    ids: list[str] = []
    for use in uses(pod, container, extended=extended):
        record = records.find(pod.metadata.namespace, use.claim)
        if record is None:
            raise ClaimUnknown(
                f"unable to get claim info for ResourceClaim {use.claim} in namespace {pod.metadata.namespace}"
            )
        ids += [cdi_id for _, device in use.devices(record) for cdi_id in device.cdi_ids]
    return ids


def needs_preparation(records: ClaimRecords, pod: Pod) -> bool:
    """Whether devices of the pod were lost with a damaged checkpoint, and drivers have to be asked again."""
    return any(record.rebuilt for record in records.of_pod(pod.metadata.uid))
