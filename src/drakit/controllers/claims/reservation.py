"""Reserve claims for pods that got their node without the scheduler.

In:  a pod with a node.
Out: the pod (or its group) in `reservedFor` of those of its claims that are allocated for that node.

A pod that has ended is never added: it is looked up at the server before it is.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import msgspec

from drakit.api import (
    Node,
    Pod,
    PodGroup,
    PodResourceClaim,
    ResourceClaim,
    claim_names,
    consumer_of,
    is_made_for_pod,
    is_reserved_for_pod,
)
from drakit.api.objects.partial import Partial
from drakit.base.nodeselectors import matches
from drakit.client import PODS, Client, V
from drakit.controllers.claims.consumers import MOST_CONSUMERS, is_done
from drakit.informers import Informer

log = logging.getLogger("drakit.controllers")
replace = msgspec.structs.replace


class ClaimReserver:
    def __init__(self, client: Client, claims: Informer[ResourceClaim], nodes: Informer[Partial[Node]]) -> None:
        self._client = client
        self._claims = claims
        self._nodes = nodes

    def is_settled(self, pod: Pod) -> bool:
        """Whether a pod without a group is in all claims that can be reserved for it."""
        return not any(self._to_reserve(pod, groups=False))

    async def reserve(self, pod: Pod, group: PodGroup | None) -> None:
        for claim, entry in self._to_reserve(pod, groups=group is not None):
            await self._add(claim, pod, entry, group)

    def _to_reserve(self, pod: Pod, *, groups: bool) -> Iterator[tuple[ResourceClaim, PodResourceClaim]]:
        names = claim_names(pod)
        for entry in pod.spec.resource_claims:
            claim = self._claims.cache.named(names.get(entry.name, ""), pod.metadata.namespace)
            if claim is not None and self._wanted(claim, pod, entry, groups):
                yield claim, entry

    def _wanted(self, claim: ResourceClaim, pod: Pod, entry: PodResourceClaim, groups: bool) -> bool:
        if claim.metadata.deletion_timestamp is not None or len(claim.status.reserved_for) >= MOST_CONSUMERS:
            return False
        if is_reserved_for_pod(claim, pod, groups=groups):
            return False
        if entry.resource_claim_template_name is not None and not is_made_for_pod(claim, pod, groups=groups):
            return False
        return self._is_for_node(claim, pod.spec.node_name)

    def _is_for_node(self, claim: ResourceClaim, name: str) -> bool:
        allocation = claim.status.allocation
        if allocation is None:
            return False
        if allocation.node_selector is None:
            return True
        node = self._nodes.cache.named(name)
        return matches(allocation.node_selector, name=name, labels=node.view.metadata.labels if node else {})

    async def _add(self, claim: ResourceClaim, pod: Pod, entry: PodResourceClaim, group: PodGroup | None) -> None:
        now = await self._client.find(PODS, pod.metadata.name, namespace=pod.metadata.namespace)
        if now is None or now.view.metadata.uid != pod.metadata.uid or is_done(now.view):
            return
        consumers = (*claim.status.reserved_for, consumer_of(pod, entry, group))
        await self._client.update_status(replace(claim, status=replace(claim.status, reserved_for=consumers)))
        log.log(V[3], "claim %s reserved for pod %s", claim.metadata.name, pod.metadata.name)
