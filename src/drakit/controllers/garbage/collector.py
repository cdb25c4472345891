"""The garbage collector: what is owned goes when its owners have gone.

In:  objects with owners, and owners that are being deleted.
Out: background: dependents are deleted once no owner is left.
     foreground: the owner stays, with the finalizer `foregroundDeletion`, until dependents that block it are gone.
     orphan: dependents lose their reference to the owner, then the owner its finalizer `orphan`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec

from drakit.api import ObjectMeta, OwnerReference, to_plain
from drakit.base.wellknown import FOREGROUND_FINALIZER, ORPHAN_FINALIZER
from drakit.client import Resource, V, key_of, metadata_of
from drakit.controllers.context import ControllerContext
from drakit.controllers.garbage.graph import Graph, OwnedObject
from drakit.informers import Result

log = logging.getLogger("drakit.controllers")

NAME = "garbage_collector"
ACCOUNT = "generic-garbage-collector"
_OWNERS_TOGETHER = 500
"""Owners of one object that are looked at in one turn of the loop: who writes an object says how many it has."""


class Owners(msgspec.Struct, frozen=True):
    """The owner references of an object, sorted: owner exists, owner waits for its dependents, owner is gone."""

    solid: list[OwnerReference]
    waiting: list[OwnerReference]
    gone: list[OwnerReference]


class GarbageCollector:
    def __init__(self, context: ControllerContext, *, workers: int = 4) -> None:
        self._client = context.client_of(ACCOUNT)
        self._graph = Graph(self._client, context.informers)
        self.loop = context.loop(NAME, self.reconcile, workers=workers)
        self.loops = (self.loop,)

    async def prepare(self) -> None:
        await self._graph.follow(self._changed)

    async def reconcile(self, item: OwnedObject) -> Result:
        obj = self._graph.get(item)
        if obj is None:
            return Result.done()
        metadata = metadata_of(obj)
        if is_deleting(metadata, ORPHAN_FINALIZER):
            await self._orphan(obj, metadata)
        elif is_deleting(metadata, FOREGROUND_FINALIZER):
            await self._wait_for_dependents(obj, metadata)
        elif metadata.deletion_timestamp is None and metadata.owner_references:
            await self._check_owners(item, obj, metadata)
        return Result.done()

    async def _orphan(self, owner: Any, metadata: ObjectMeta) -> None:
        for _, dependent in list(self._graph.dependents(metadata.uid)):
            kept = [each for each in metadata_of(dependent).owner_references if each.uid != metadata.uid]
            await self._set_owners(dependent, kept)
        await self._remove_finalizer(owner, metadata, ORPHAN_FINALIZER)

    async def _wait_for_dependents(self, owner: Any, metadata: ObjectMeta) -> None:
        blocked = False
        for item, dependent in self._graph.dependents(metadata.uid):
            about = metadata_of(dependent)
            blocked |= any(each.uid == metadata.uid and each.block_owner_deletion for each in about.owner_references)
            if about.deletion_timestamp is None:
                self.loop.queue.add(item)
        if not blocked:
            await self._remove_finalizer(owner, metadata, FOREGROUND_FINALIZER)

    async def _check_owners(self, item: OwnedObject, obj: Any, metadata: ObjectMeta) -> None:
        # Owners that a cache does not have are looked up at the server: deleting because of a stale cache cannot be
        # undone.
        owners = await self._sort(metadata)
        if owners.solid:
            if owners.waiting or owners.gone:
                await self._set_owners(obj, owners.solid)
            return
        propagation = _propagation(metadata)
        if owners.waiting:
            dependents = [metadata_of(each) for _, each in self._graph.dependents(metadata.uid)]
            if any(is_deleting(each, FOREGROUND_FINALIZER) for each in dependents):
                obj = await self._unblock(obj, metadata)  # each waits for the other
            if dependents:
                propagation = "Foreground"
        await self._delete(item, obj, propagation)

    async def _sort(self, metadata: ObjectMeta) -> Owners:
        owners = Owners([], [], [])
        for number, reference in enumerate(metadata.owner_references, 1):
            if not number % _OWNERS_TOGETHER:
                await asyncio.sleep(0)
            found = await self._graph.owner(reference, metadata.namespace)
            if found is None:
                owners.gone.append(reference)
            elif is_deleting(found, FOREGROUND_FINALIZER):
                owners.waiting.append(reference)
            else:
                owners.solid.append(reference)
        return owners

    async def _delete(self, item: OwnedObject, obj: Any, propagation: str) -> None:
        metadata = metadata_of(obj)
        log.log(V[2], "%s: nobody owns it any more, deleting it (%s)", item, propagation)
        await self._client.delete(
            item.resource,
            metadata.name,
            namespace=metadata.namespace,
            # Preconditions: another object of the name, or one that got an owner meanwhile, is not deleted.
            uid=metadata.uid,
            resource_version=metadata.resource_version,
            propagation=propagation,
        )

    async def _set_owners(self, obj: Any, owners: list[OwnerReference]) -> Any:
        patch = {"metadata": {"ownerReferences": [to_plain(each) for each in owners] or None}}
        return await self._client.patch(obj, patch, versioned=True)

    async def _unblock(self, obj: Any, metadata: ObjectMeta) -> Any:
        unblocking = [msgspec.structs.replace(each, block_owner_deletion=False) for each in metadata.owner_references]
        return await self._set_owners(obj, unblocking)

    async def _remove_finalizer(self, obj: Any, metadata: ObjectMeta, finalizer: str) -> None:
        kept = [name for name in metadata.finalizers if name != finalizer]
        await self._client.patch(obj, {"metadata": {"finalizers": kept or None}}, versioned=True)

    # Which changes concern whom

    def _changed(self, resource: Resource[Any], old: Any, new: Any) -> None:
        if new is not None and not _is_considered(old, metadata_of(new)):
            self._consider(OwnedObject(resource, key_of(new)), metadata_of(new))
        if old is None:
            return
        if new is None or metadata_of(new).uid != metadata_of(old).uid:
            self._add_dependents(metadata_of(old).uid)
        if new is None or metadata_of(new).owner_references != metadata_of(old).owner_references:
            self._add_owners(self._graph.owners(old))

    def _consider(self, item: OwnedObject, metadata: ObjectMeta) -> None:
        ours = is_deleting(metadata, ORPHAN_FINALIZER) or is_deleting(metadata, FOREGROUND_FINALIZER)
        if ours or (metadata.owner_references and metadata.deletion_timestamp is None):
            self.loop.queue.add(item)

    def _add_owners(self, owners: Iterator[OwnedObject]) -> None:
        some = tuple(islice(owners, _OWNERS_TOGETHER))
        for owner in some:
            self.loop.queue.add(owner)
        if len(some) == _OWNERS_TOGETHER:
            asyncio.get_running_loop().call_soon(self._add_owners, owners)

    def _add_dependents(self, uid: str) -> None:
        for item, _ in self._graph.dependents(uid):
            self.loop.queue.add(item)


def _is_considered(old: Any, now: ObjectMeta) -> bool:
    """Whether an object that is not on its way out has the owners for which it was looked at before.

    Their own end queues it, if they go later.
    """
    if old is None or now.deletion_timestamp is not None:
        return False
    before = metadata_of(old)
    return before.uid == now.uid and before.owner_references == now.owner_references


def is_deleting(metadata: ObjectMeta, finalizer: str) -> bool:
    return metadata.deletion_timestamp is not None and finalizer in metadata.finalizers


def _propagation(metadata: ObjectMeta) -> str:
    """How an object is to be deleted that says itself what shall become of its dependents."""
    if ORPHAN_FINALIZER in metadata.finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND_FINALIZER in metadata.finalizers else "Background"
