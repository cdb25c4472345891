"""Count what a namespace uses of its quotas.

In:  ResourceQuotas, and every object that may count, as they come and go.
Out: `status.hard` as the spec says, `status.used` as counted. Admission charges what is created; this corrects what was
     charged and never stored, and gives back what is gone.

Usage goes down only by what the server itself lists, and only once the last charge is so old that its object is
stored: a cache that lags behind would give back what was charged for objects that it has not seen.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from drakit.api import DeviceClass, Pod, ResourceClaim, ResourceQuota
from drakit.api.objects.partial import Partial
from drakit.base.quantity import ZERO, Quantity
from drakit.client import CLASSES, PODS, QUOTAS, Key, Resource, V, key_of, metadata_of
from drakit.controllers.context import ControllerContext
from drakit.controllers.garbage.graph import served
from drakit.informers import Informer, Result
from drakit.quota import covers, owner_name, tracked, usage

log = logging.getLogger("drakit.controllers")

NAME = "resourcequota_primary"
ACCOUNT = "resourcequota-controller"
DELAY = 1.0
"""Seconds in which changes gather before they are counted."""


class QuotaController:
    def __init__(self, context: ControllerContext, *, workers: int = 2) -> None:
        self._client = context.client_of(ACCOUNT)
        self._informers = context.informers
        self._quotas: Informer[Partial[ResourceQuota]] = context.informers.of(QUOTAS)
        self._classes: Informer[DeviceClass] = context.informers.of(CLASSES)
        self._pods: Informer[Partial[Pod]] = context.informers.of(PODS)
        self._counted: dict[Resource[Any], Informer[Any]] = {}
        self._clock = context.clock
        self._changed: dict[Key, float] = {}
        """When each quota was last seen to change."""
        self.loop = context.loop(NAME, self.reconcile, workers=workers)
        self.loops = (self.loop,)
        self._quotas.subscribe(self._quota_changed)

    async def prepare(self) -> None:
        for resource in await served(self._client):
            if resource.kind.namespaced:
                informer = self._counted[resource] = self._informers.of(resource)
                informer.subscribe(partial(self._object_changed, resource))

    async def reconcile(self, key: Key) -> Result:
        quota = self._quotas.cache.get(key)
        if quota is None or quota.view.metadata.deletion_timestamp is not None:
            return Result.done()
        used = self._count(quota.view, self._cached(quota.view))
        hard, charged = quota.view.spec.hard, quota.view.status.used
        if hard == quota.view.status.hard and used == charged:
            return Result.done()
        if any(name not in charged or amount < charged[name] for name, amount in used.items()):
            soon = self._changed.get(key, 0.0) + DELAY - self._clock.monotonic()
            if soon > 0 and charged:
                return Result.after(soon)
            used = self._count(quota.view, await self._listed(quota.view))
        status = {"hard": _texts(hard), "used": _texts(used)}
        await self._client.update({**quota.document, "status": status}, subresource="status")
        log.log(V[4], "quota %s: counted anew", key)
        return Result.done()

    def _names(self, quota: ResourceQuota, resource: Resource[Any]) -> list[str]:
        """The limits of a quota that objects of a kind count against."""
        kind, classes = resource.kind, list(self._classes.cache)
        return [name for name in quota.spec.hard if tracked(name, kind.plural, kind.group, classes)]

    def _cached(self, quota: ResourceQuota) -> dict[Resource[Any], Iterable[Any]]:
        """What counts, as far as the caches have it."""
        return {
            resource: informer.cache.all(quota.metadata.namespace)
            for resource, informer in self._counted.items()
            if self._names(quota, resource)
        }

    async def _listed(self, quota: ResourceQuota) -> dict[Resource[Any], Iterable[Any]]:
        """What counts, as the server has it now."""
        return {
            resource: await self._client.list(resource, namespace=quota.metadata.namespace)
            for resource in self._counted
            if self._names(quota, resource)
        }

    def _count(self, quota: ResourceQuota, there: Mapping[Resource[Any], Iterable[Any]]) -> dict[str, Quantity]:
        used: dict[str, Quantity] = {}
        for resource, objects in there.items():
            names = self._names(quota, resource)
            used |= {name: used.get(name, ZERO) for name in names}
            for amounts in self._amounts(resource, quota, objects):
                used |= {name: used[name] + amounts[name] for name in names if name in amounts}
        return used

    def _amounts(
        self, resource: Resource[Any], quota: ResourceQuota, objects: Iterable[Any]
    ) -> Iterator[dict[str, Quantity]]:
        for found in objects:
            obj = found.view if type(found) is Partial else found
            if covers(quota, obj):
                owner = self._owner(obj) if isinstance(obj, ResourceClaim) else None
                yield usage(resource.kind.plural, resource.kind.group, obj, self._classes.cache.named, owner=owner)

    def _owner(self, claim: ResourceClaim) -> Pod | None:
        """The pod for whose extended resources a claim was made; it counts what it asks for itself."""
        name, uid = owner_name(claim)
        found = self._pods.cache.named(name, claim.metadata.namespace) if name else None
        if found is None or found.view.metadata.uid != uid:
            return None
        made = found.view.status.extended_resource_claim_status
        return found.view if made is None or made.resource_claim_name == claim.metadata.name else None

    def _quota_changed(self, old: Partial[ResourceQuota] | None, new: Partial[ResourceQuota] | None) -> None:
        if new is None:
            if old is not None:
                self._changed.pop(key_of(old), None)
            return
        self._changed[key_of(new)] = self._clock.monotonic()
        if old is None or old.view.spec != new.view.spec:
            self.loop.queue.add(key_of(new))
        else:
            self.loop.queue.add_after(key_of(new), DELAY)

    def _object_changed(self, resource: Resource[Any], old: Any, new: Any) -> None:
        if resource is QUOTAS and old is not None and new is not None:
            return
        namespace = metadata_of(new if new is not None else old).namespace
        for quota in self._quotas.cache.all(namespace):
            self.loop.queue.add_after(key_of(quota), DELAY)


def _texts(amounts: Any) -> dict[str, str]:
    return {name: str(amount) for name, amount in sorted(amounts.items())}
