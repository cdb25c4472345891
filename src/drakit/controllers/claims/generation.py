"""Make the claims of templates: one per entry of a pod, and one per entry of a PodGroup.

In:  a pod or group.
Out: claims, and their names in the status of the pod or group. An entry of a pod that its group has too is the group's:
     the group's claim is recorded in the pod as well.

Creating and recording are two writes. A claim that was created and not recorded is found by its owner and annotation.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from drakit.api import (
    Pod,
    PodGroup,
    PodResourceClaim,
    ResourceClaim,
    ResourceClaimTemplate,
    matching_group_claim,
    pod_group_name,
)
from drakit.api.objects.workloads import PodGroupResourceClaim
from drakit.api.templateclaims import claim_of, is_controlled_by, made_for
from drakit.base.errors import DrakitError, Retryable, Unavailable
from drakit.base.wellknown import POD_CLAIM_ANNOTATION
from drakit.client import CLAIMS, STRATEGIC, Client, Key, RequestTimeout, ServerTimeout, V
from drakit.controllers.claims.metrics import ClaimControllerMetrics
from drakit.informers import Informer

log = logging.getLogger("drakit.controllers")


class Missing(Retryable):
    """What a claim is to be made of is not there (yet)."""


class ClaimGenerator:
    def __init__(
        self,
        client: Client,
        claims: Informer[ResourceClaim],
        templates: Informer[ResourceClaimTemplate],
        groups: Informer[PodGroup] | None,
        metrics: ClaimControllerMetrics,
    ) -> None:
        self._client = client
        self._claims = claims
        self._templates = templates
        self._groups = groups
        self._metrics = metrics
        # Made by this process and perhaps not in the cache yet, by owner's uid and entry.
        self._made: dict[tuple[str, str], ResourceClaim] = {}
        self._in_doubt: set[tuple[str, str]] = set()

    def forget(self, owner: str) -> None:
        """The pod or group of that uid is gone."""
        for known in (*self._made, *self._in_doubt):
            if known[0] == owner:
                self._made.pop(known, None)
                self._in_doubt.discard(known)

    def group_of(self, pod: Pod) -> PodGroup | None:
        """The pod's group, where groups have claims; raise Missing when it is not there."""
        name = pod_group_name(pod)
        if name is None or self._groups is None:
            return None
        group = self._groups.cache.named(name, pod.metadata.namespace)
        if group is None:
            raise Missing(f'pod group "{name}": podgroup.scheduling.k8s.io "{name}" not found')
        return group

    def is_settled(self, pod: Pod) -> bool:
        """Whether the cache shows all claims of the pod's own entries, and its status names them."""
        if pod.spec.scheduling_group is not None:
            return False
        uid, namespace = pod.metadata.uid, pod.metadata.namespace
        for entry in pod.spec.resource_claims:
            if entry.resource_claim_template_name is not None:
                claim = self._claims.cache.named(self._recorded(pod, entry.name) or "", namespace)
                if claim is None or not is_controlled_by(claim, uid):
                    return False
        return True

    async def claim_for_pod(self, pod: Pod, entry: PodResourceClaim) -> str | None:
        """The name of the claim of an entry that names a template, made if need be; none if it is not made yet."""
        group = self.group_of(pod)
        shared = matching_group_claim(group, entry) if group is not None else None
        if group is not None and shared is not None:
            return self._recorded(group, shared.name)
        return (await self._claim(pod, entry)).metadata.name

    async def claim_for_group(self, group: PodGroup, entry: PodGroupResourceClaim) -> str:
        return (await self._claim(group, entry)).metadata.name

    async def record(self, obj: Any, owner: Pod | PodGroup, names: Mapping[str, str | None]) -> None:
        """Write into the status which claims belong to which entries, as far as it does not say so already."""
        news = [
            {"name": entry, "resourceClaimName": name}
            for entry, name in names.items()
            if name is not None and self._recorded(owner, entry) != name
        ]
        if news:
            patch = {"status": {"resourceClaimStatuses": news}}
            # Bound to the version: after a change of leaders the last one may still be at it, with a claim of its own,
            # and a pod whose claim is exchanged while it is being scheduled never runs.
            await self._client.patch(obj, patch, kind=STRATEGIC, subresource="status", versioned=True)

    async def _claim(self, owner: Pod | PodGroup, entry: PodResourceClaim | PodGroupResourceClaim) -> ResourceClaim:
        found = await self._find(owner, entry.name)
        if found is not None:
            return found
        name, namespace = entry.resource_claim_template_name or "", owner.metadata.namespace
        template = self._templates.cache.named(name, namespace)
        if template is None:
            raise Missing(f'resource claim template "{name}": resourceclaimtemplate.resource.k8s.io "{name}" not found')
        return await self._create(claim_of(template, owner, entry.name), (owner.metadata.uid, entry.name))

    async def _find(self, owner: Pod | PodGroup, entry: str) -> ResourceClaim | None:
        """The claim of an entry, if it exists.

        It is in the cache, or was made a moment ago, or is at the server after a create whose answer never came. The
        claim that the owner's status names counts, even when somebody has changed its annotation.
        """
        known = (owner.metadata.uid, entry)
        # A create whose answer was lost. The cache may lag behind it, so only the server can tell.
        if known in self._in_doubt:
            found = made_for(await self._client.list(CLAIMS, namespace=owner.metadata.namespace), *known)
            self._in_doubt.discard(known)
            if found is not None:
                self._made[known] = found
            return found
        name, namespace = self._recorded(owner, entry), owner.metadata.namespace
        recorded = self._claims.cache.named(name or "", namespace)
        if recorded is None and name:
            # Recorded by another leader, before our cache has the claim; or somebody has deleted it.
            recorded = await self._client.find(CLAIMS, name, namespace=namespace)
        if recorded is not None and is_controlled_by(recorded, owner.metadata.uid):
            return recorded
        cached = made_for(self._claims.by("controller", owner.metadata.uid), *known)
        return cached if cached is not None else self._just_made(known)

    def _just_made(self, known: tuple[str, str]) -> ResourceClaim | None:
        """A claim that we made and that the cache has not seen yet.

        A cache that is past the claim's creation and does not have it shows that it was deleted again.
        """
        # Compared as numbers: both are revisions of the server's one store.
        made, seen = self._made.get(known), self._claims.reflector.version
        if made is None or not seen.isdigit() or int(seen) < int(made.metadata.resource_version):
            return made
        del self._made[known]
        return None

    def seen(self, claim: ResourceClaim) -> None:
        """Note that the cache has seen a claim. From now on the cache alone says whether it exists."""
        owner = claim.metadata.controller
        if owner is not None:
            self._made.pop((owner.uid, claim.metadata.annotations.get(POD_CLAIM_ANNOTATION, "")), None)

    async def _create(self, claim: ResourceClaim, known: tuple[str, str]) -> ResourceClaim:
        try:
            made = await self._client.create(claim)
        except DrakitError as error:
            self._metrics.created("failure", claim)
            # It may have been created: making another one would leave the pod with two. The next try asks the server.
            if isinstance(error, Unavailable | RequestTimeout | ServerTimeout):
                self._in_doubt.add(known)
            raise
        self._metrics.created("success", claim)
        self._made[known] = made
        log.log(
            V[2], "claim %s made for %s", Key(made.metadata.namespace, made.metadata.name), claim.metadata.generate_name
        )
        return made

    def _recorded(self, owner: Pod | PodGroup, entry: str) -> str | None:
        statuses = owner.status.resource_claim_statuses
        return next((each.resource_claim_name for each in statuses if each.name == entry), None)
