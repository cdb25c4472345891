"""Who owns whom, over every kind that the server serves.

In:  informers of all kinds that can be listed, watched and deleted; events are nobody's.
Out: objects, their owners and their dependents. That an owner is gone is believed of the server alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from drakit.api import KINDS, ObjectMeta, OwnerReference
from drakit.client import Client, Key, Resource, key_of, metadata_of, resource_named, resource_of
from drakit.informers import Informer, Informers, by_owner

_NEEDED = {"list", "watch", "delete", "patch"}
_MOST_REMEMBERED = 500
"""Owners that are known to be gone. An owner with many dependents is asked for once."""


class OwnedObject(NamedTuple):
    """An object of any kind."""

    resource: Resource[Any]
    key: Key

    def __str__(self) -> str:
        return f"{self.resource.name} {self.key}"


class Graph:
    def __init__(self, client: Client, informers: Informers) -> None:
        self._client = client
        self._shared = informers
        self._informers: dict[Resource[Any], Informer[Any]] = {}
        # Owners that are no more: a uid never comes back, but the same uid may be there under another name or place.
        self._gone: dict[tuple[OwnedObject, str], None] = {}

    async def follow(self, changed: Callable[[Resource[Any], Any, Any], None]) -> None:
        """Begin to follow every kind that is served."""
        for resource in await served(self._client):
            informer = self._informers[resource] = self._shared.of(resource)
            informer.add_index("owner", by_owner)
            informer.subscribe(partial(changed, resource))

    def get(self, item: OwnedObject) -> Any:
        informer = self._informers.get(item.resource)
        return informer.cache.get(item.key) if informer is not None else None

    def dependents(self, uid: str) -> Iterator[tuple[OwnedObject, Any]]:
        for resource, informer in self._informers.items():
            for obj in informer.by("owner", uid):
                yield OwnedObject(resource, key_of(obj)), obj

    def owners(self, obj: Any) -> Iterator[OwnedObject]:
        """The owners of an object, whether they are there or not, as far as their kinds are known."""
        metadata = metadata_of(obj)
        for reference in metadata.owner_references:
            item = self._item(reference, metadata.namespace)
            if item is not None:
                yield item

    async def owner(self, reference: OwnerReference, namespace: str) -> ObjectMeta | None:
        """The metadata of an owner; none when it is gone. Of a kind that nobody knows, all are there."""
        item = self._item(reference, namespace)
        if item is None:
            return ObjectMeta(name=reference.name, uid=reference.uid)
        if (item, reference.uid) in self._gone:
            return None
        found = self.get(item)
        if found is None or metadata_of(found).uid != reference.uid:
            found = await self._client.find(item.resource, item.key.name, namespace=item.key.namespace)
        if found is None or metadata_of(found).uid != reference.uid:
            self._remember(item, reference.uid)
            return None
        return metadata_of(found)

    def _item(self, reference: OwnerReference, namespace: str) -> OwnedObject | None:
        """The owner, if its kind is followed. A cluster-scoped object cannot have an owner in a namespace: None."""
        resource = resource_named(reference.api_version, reference.kind)
        if resource is None or resource not in self._informers:
            return None
        if not resource.kind.namespaced:
            return OwnedObject(resource, Key("", reference.name))
        return OwnedObject(resource, Key(namespace, reference.name)) if namespace else None

    def _remember(self, owner: OwnedObject, uid: str) -> None:
        self._gone[owner, uid] = None
        if len(self._gone) > _MOST_REMEMBERED:
            del self._gone[next(iter(self._gone))]


async def served(client: Client) -> list[Resource[Any]]:
    """Every kind with objects that come and go, as far as the server has it."""
    kinds = [kind for kind in KINDS if set(kind.verbs) >= _NEEDED and kind.kind != "Event"]
    return [resource for resource in map(resource_of, kinds) if await client.serves(resource)]
