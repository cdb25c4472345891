"""What if some pods were gone: which claims would lose their allocation, and what could be allocated then?

In:  claims and pods as they are now.
Out: an inventory in which the devices of those claims are free.

A claim gives its devices back when nobody uses it any more. So one that a pod uses which stays, or a PodGroup, gives
back nothing; one whose users are all gone or over does so anyway, and only waits for its controller.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

from drakit.allocator import Inventory
from drakit.api.objects.claims import ResourceClaimConsumerReference
from drakit.api.podclaims import claim_names
from drakit.client import PODS, Key
from drakit.scheduler.dynamicresources.state.context import PluginContext


class ClaimUsers:
    """The users of all allocated claims, at one moment. Do not keep it: it does not follow later changes."""

    def __init__(self, context: PluginContext) -> None:
        self._context = context
        self._claims = context.claims.with_devices()

    def freed(self, gone: Collection[str]) -> list[str]:
        """The uids of the claims that lose their allocation when the pods of these uids are gone."""
        away = {*gone, *self._over}
        concerned = {claim for uid in gone for claim in self._claims_of.get(uid, ())} | self._abandoned
        return [claim for claim in concerned if self._users[claim] <= away]

    @cached_property
    def _users(self) -> dict[str, set[str]]:
        """By claim, whoever it is reserved for, and pods on nodes that name it: their reservation may be under way."""
        users: dict[str, set[str]] = {}
        named: dict[Key, str] = {}
        for claim in self._claims:
            uid = claim.metadata.uid
            named[Key(claim.metadata.namespace, claim.metadata.name)] = uid
            flight = self._context.claims.flight(uid)
            users[uid] = {each.uid for each in claim.status.reserved_for} | ({flight.consumer} if flight else set())
        for node in self._context.handle.nodes:
            for pod in node.pods.values():
                for name in claim_names(pod).values():
                    if (found := named.get(Key(pod.metadata.namespace, name))) is not None:
                        users[found].add(pod.metadata.uid)
        return users

    @cached_property
    def _claims_of(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for claim, users in self._users.items():
            for uid in users:
                found.setdefault(uid, []).append(claim)
        return found

    @cached_property
    def _over(self) -> set[str]:
        """The uids of pods that are deleted or have ended, and that a claim is still reserved for."""
        return {
            consumer.uid
            for claim in self._claims
            for consumer in claim.status.reserved_for
            if self._is_over(claim.metadata.namespace, consumer)
        }

    @cached_property
    def _abandoned(self) -> set[str]:
        """Claims all of whose users are gone."""
        over = self._over
        return {claim for claim, users in self._users.items() if users and users <= over} if over else set()

    def _is_over(self, namespace: str, consumer: ResourceClaimConsumerReference) -> bool:
        if consumer.resource != "pods" or consumer.api_group:
            return False
        found = self._context.handle.informers.of(PODS).cache.get(Key(namespace, consumer.name))
        return found is None or found.view.metadata.uid != consumer.uid or found.view.is_terminal


def without_claims(inventory: Inventory, uids: Collection[str]) -> Inventory:
    """A fork in which these claims have no devices."""
    fork = inventory.fork()
    for uid in uids:
        fork.end_allocation(uid)
        fork.remove_claim(uid)
    return fork
