"""Whether those who use a claim still do.

In:  entries of `status.reservedFor`, owner references; the caches of pods and groups.
Out: the consumer, or none when it is certain that it is gone. A cache may lag behind: what it does not have is asked
     for, so nothing is taken from a consumer that is only too new.
"""

from __future__ import annotations

from typing import Any

from drakit.api import (
    SCHEDULING_GROUP,
    Pod,
    PodGroup,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from drakit.api.objects.partial import Partial
from drakit.client import POD_GROUPS, PODS, Client
from drakit.informers import Informer

MOST_CONSUMERS = 256
_MOST_GONE = 1000


def is_done(pod: Pod) -> bool:
    """Whether the pod has ended, or is deleted before it got a node and so will never start."""
    return pod.is_terminal or (pod.metadata.deletion_timestamp is not None and not pod.spec.node_name)


class Consumers:
    def __init__(self, client: Client, pods: Informer[Partial[Pod]], groups: Informer[PodGroup] | None) -> None:
        """`groups` is none where PodGroups have no claims."""
        self._client = client
        self._pods = pods
        self._groups = groups
        # Of which an informer has shown the deletion, the oldest first: a uid never comes back.
        self._gone: dict[str, None] = {}

    def note_gone(self, uid: str) -> None:
        """A pod or group was deleted: the server need not be asked for it. A released claim takes two reads less."""
        self._gone[uid] = None
        if len(self._gone) > _MOST_GONE:
            del self._gone[next(iter(self._gone))]

    def is_gone(self, uid: str) -> bool:
        """Whether an informer has shown that the pod or group of that uid was deleted, as far as is remembered."""
        return uid in self._gone

    async def pod(self, namespace: str, name: str, uid: str) -> Pod | None:
        """The pod of that uid; none when there is none."""
        if uid in self._gone:
            return None
        cached = self._pods.cache.named(name, namespace)
        if cached is None or cached.view.metadata.uid != uid:
            cached = await self._client.find(PODS, name, namespace=namespace)
        return cached.view if cached is not None and cached.view.metadata.uid == uid else None

    async def group(self, namespace: str, name: str, uid: str) -> PodGroup | None:
        """The group of that uid; none when there is none."""
        if uid in self._gone:
            return None
        cached = self._groups.cache.named(name, namespace) if self._groups is not None else None
        if cached is None or cached.metadata.uid != uid:
            cached = await self._client.find(POD_GROUPS, name, namespace=namespace)
        return cached if cached is not None and cached.metadata.uid == uid else None

    async def still_uses(self, claim: ResourceClaim, entry: ResourceClaimConsumerReference) -> bool:
        """Whether the consumer still uses the claim. Consumers other than pods and PodGroups always do."""
        namespace = claim.metadata.namespace
        if (entry.api_group, entry.resource) == ("", "pods"):
            pod = await self.pod(namespace, entry.name, entry.uid)
            return pod is not None and not is_done(pod)
        if (entry.api_group, entry.resource) == (SCHEDULING_GROUP, "podgroups") and self._groups is not None:
            return await self.group(namespace, entry.name, entry.uid) is not None
        return True

    def surely_uses(self, claim: ResourceClaim, entry: ResourceClaimConsumerReference) -> bool:
        """Whether the cache alone shows that a pod still uses the claim. False: it must be looked at."""
        is_pod = (entry.api_group, entry.resource) == ("", "pods")
        return is_pod and self._is_alive(claim.metadata.namespace, entry.name, entry.uid)

    def owner_surely_needs(self, claim: ResourceClaim) -> bool:
        """Whether the cache alone shows that the claim is nobody's, or of a pod that may still use it."""
        owner = claim.metadata.controller
        if owner is None:
            return True
        is_pod = (owner.api_version, owner.kind) == ("v1", "Pod")
        return is_pod and self._is_alive(claim.metadata.namespace, owner.name, owner.uid)

    def _is_alive(self, namespace: str, name: str, uid: str) -> bool:
        cached = self._pods.cache.named(name, namespace)
        return cached is not None and cached.view.metadata.uid == uid and not is_done(cached.view)

    async def owner_needs(self, claim: ResourceClaim) -> bool:
        """Whether the pod or group that a claim was made for may still use it; True for all other claims."""
        owner = claim.metadata.controller
        if owner is None:
            return True
        namespace = claim.metadata.namespace
        if (owner.api_version, owner.kind) == ("v1", "Pod"):
            pod = await self.pod(namespace, owner.name, owner.uid)
            return pod is not None and not is_done(pod)
        of_group = owner.kind == "PodGroup" and owner.api_version.startswith(SCHEDULING_GROUP + "/")
        if of_group and self._groups is not None:
            return await self.group(namespace, owner.name, owner.uid) is not None
        return True


def by_consumer(claim: ResourceClaim) -> list[str]:
    """Index function of claims: the uids of their consumers."""
    return [each.uid for each in claim.status.reserved_for]


def by_claim(pod: Partial[Pod]) -> list[tuple[str, str]]:
    """Index function of pods: the claims that they name, as (namespace, name)."""
    view = pod.view
    named = [each.resource_claim_name for each in view.spec.resource_claims]
    made = [each.resource_claim_name for each in view.status.resource_claim_statuses]
    return [(view.metadata.namespace, name) for name in (*named, *made) if name]


def by_template(obj: Any) -> list[tuple[str, str]]:
    """Index function of pods and groups: the templates that they name, as (namespace, name)."""
    view = obj.view if type(obj) is Partial else obj
    names = [each.resource_claim_template_name for each in view.spec.resource_claims]
    return [(view.metadata.namespace, name) for name in names if name]


def by_group(pod: Partial[Pod]) -> list[tuple[str, str]]:
    """Index function of pods: their PodGroup, as (namespace, name)."""
    group = pod.view.spec.scheduling_group
    return [(pod.view.metadata.namespace, group.pod_group_name)] if group and group.pod_group_name else []
