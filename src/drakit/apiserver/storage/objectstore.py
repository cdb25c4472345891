"""Objects in and out of the store.

In:  kinds, namespaces, names, documents.
Out: StoredObjects, each decoded once per write for all readers; errors in the words of the API.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from drakit.api.objects.plain import Plain
from drakit.api.registry import Kind
from drakit.apiserver.failures import ApiError, object_too_large
from drakit.apiserver.storage.encryption import NO_ENCRYPTION, Encryption
from drakit.apiserver.storage.objects import NOTHING_PRECOMPUTED, Precomputed, StoredObject, storage_form
from drakit.base import status
from drakit.base.clock import Clock, RealClock
from drakit.store import PLAIN, Conflict, Guard, KeyExists, KeyNotFound, Record, Store, StoreEvent, WriteTerms

CACHED = 131_072
WARM_SECONDS = 60.0
"""How long an object keeps what its write decoded: five times its JSON. After that it is decoded when it is read."""
SUPERSEDED = 4_096
SUPERSEDED_BYTES = 8 * 1024 * 1024
"""How many replaced objects stay cached, and of how many bytes: watches compare an object with the one before. None
stays longer than the store's history: no watch can begin before that."""
LONG = 32 * 1024
LONG_BYTES = 16 * 1024 * 1024
"""Bytes from which an object counts as long; and of all long ones that stay cached. What an object is decoded to takes
up to forty times as much memory as its bytes."""
LARGEST = 1536 * 1024
"""Bytes of a stored object, unless set: as much as etcd takes."""
NO_LIFETIMES: Mapping[str, float] = {}
CHANGED = "the object has been modified; please apply your changes to the latest version and try again"


def prefix_of(kind: Kind, namespace: str = "") -> str:
    """The prefix of the keys of a kind's objects, in all namespaces or in one."""
    place = f"/registry/{kind.group or 'core'}/{kind.plural}/"
    return f"{place}{namespace}/" if namespace else place


def key_of(kind: Kind, namespace: str, name: str) -> str:
    place = f"/registry/{kind.group or 'core'}/{kind.plural}/"
    return f"{place}{namespace}/{name}" if namespace and kind.namespaced else place + name


def not_found(kind: Kind, name: str) -> ApiError:
    return ApiError(status.not_found(kind.plural, kind.group, name))


def conflict(kind: Kind, name: str, why: str = CHANGED) -> ApiError:
    return ApiError(status.conflict(kind.plural, kind.group, name, why))


class Observer(Protocol):
    def __call__(self, stored: StoredObject, *, gone: bool) -> None: ...


class _Superseded(NamedTuple):
    """A revision that was replaced, by which one, and the bytes of its object."""

    revision: int
    at: int
    size: int


class _Underway(NamedTuple):
    """A write that the store has not answered yet: its stored value, and what its writer knows of it."""

    sealed: bytes
    value: bytes
    document: Plain
    precomputed: Precomputed


class ObjectStore:
    """The objects in a store. Invariant: one StoredObject per revision while it is cached; the oldest leaves first."""

    def __init__(
        self,
        store: Store,
        *,
        cached: int = CACHED,
        largest: int = LARGEST,
        encryption: Encryption = NO_ENCRYPTION,
        lifetimes: Mapping[str, float] = NO_LIFETIMES,
        clock: Clock | None = None,
    ) -> None:
        """`lifetimes` are seconds after which objects of a kind end. Only a shared store sees to that."""
        self.store = store
        self._terms = {qualified: WriteTerms(ttl=seconds) for qualified, seconds in lifetimes.items()}
        self.encryption = encryption
        self._largest = largest
        self.observers: list[Observer] = []
        """Called after each write of this process, before the writer gets its answer."""
        self._cached = cached
        self._cache: OrderedDict[int, StoredObject] = OrderedDict()
        self._clock = clock or RealClock()
        self._warm: deque[tuple[float, int]] = deque()
        """When revisions came into the cache, for those whose objects still have what was decoded of them."""
        self._underway: dict[int, _Underway] = {}
        """By the identity of the stored value. A durable store shows a write to watches before its writer goes on:
        they take the object from here. Decoding it again, six times a pod, was a tenth of a pod's time on SQLite."""
        self._superseded: deque[_Superseded] = deque()
        self._superseded_bytes = 0
        self._long: OrderedDict[int, int] = OrderedDict()
        self._long_bytes = 0

    def from_record(self, kind: Kind, record: Record) -> StoredObject:
        """The object of a record. A revision belongs to one write, so it identifies the object in the cache."""
        found = self._cache.get(record.revision)
        if found is not None:
            return found
        write = self._underway.get(id(record.value))
        if write is not None:
            return self._from_write(kind, record, write)
        return self._remember(self._opened(kind, record.key, record.value, record.revision))

    def from_deletion(self, kind: Kind, event: StoreEvent) -> StoredObject:
        """The object that an event deleted: its last content, at the revision of the deletion."""
        found = self._cache.get(event.revision)
        if found is not None:
            return found
        stored = self._remember(self._opened(kind, event.key, event.previous_value or b"", event.revision))
        self._retire(event.revision, event.revision)
        return stored

    def before(self, kind: Kind, event: StoreEvent) -> StoredObject:
        """The object as it was before an event, at the revision of the event. Not cached: another object has that."""
        return self._opened(kind, event.key, event.previous_value or b"", event.revision)

    def _opened(self, kind: Kind, key: str, value: bytes, revision: int) -> StoredObject:
        return StoredObject(kind, key, self.encryption.open(key, value), revision)

    async def find(self, kind: Kind, namespace: str, name: str) -> StoredObject | None:
        try:
            return self.from_record(kind, await self.store.get(key_of(kind, namespace, name)))
        except KeyNotFound:
            return None

    async def get(self, kind: Kind, namespace: str, name: str) -> StoredObject:
        found = await self.find(kind, namespace, name)
        if found is None:
            raise not_found(kind, name)
        return found

    async def create(
        self,
        kind: Kind,
        namespace: str,
        document: Plain,
        *,
        spaced_parameters: bool = False,
        precomputed: Precomputed = NOTHING_PRECOMPUTED,
    ) -> StoredObject:
        """Raise store.KeyExists when the name is taken. The caller knows whether to try another one."""
        value = storage_form(kind, document, spaced_parameters=spaced_parameters)
        self._check_size(kind, document, len(value))
        key = key_of(kind, namespace, document["metadata"]["name"])
        sealed, terms = self.encryption.seal(kind.qualified, key, value), self._terms.get(kind.qualified, PLAIN)
        write = _Underway(sealed, value, document, precomputed)
        self._underway[id(sealed)] = write
        try:
            record = await self.store.create(key, sealed, terms=terms)
        finally:
            del self._underway[id(sealed)]
        return self._notify(self._from_write(kind, record, write))

    async def update(
        self,
        old: StoredObject,
        document: Plain,
        *,
        spaced_parameters: bool | None = None,
        precomputed: Precomputed = NOTHING_PRECOMPUTED,
        guard: Guard | None = None,
    ) -> StoredObject:
        """Raise store.Conflict when somebody else has written since `old` was read, store.Overtaken for the guard."""
        value = storage_form(
            old.kind,
            document,
            spaced_parameters=old.spaced_parameters if spaced_parameters is None else spaced_parameters,
        )
        self._check_size(old.kind, document, len(value), old.size)
        sealed = self.encryption.seal(old.kind.qualified, old.key, value)
        terms = WriteTerms(guard=guard) if guard is not None else self._terms.get(old.kind.qualified, PLAIN)
        write = _Underway(sealed, value, document, precomputed)
        self._underway[id(sealed)] = write
        try:
            record = await self.store.update(old.key, sealed, expected=old.revision, terms=terms)
        except KeyNotFound:
            raise not_found(old.kind, old.name) from None
        finally:
            del self._underway[id(sealed)]
        self._retire(old.revision, record.revision)
        # Observers run before the caller continues: what it wrote holds when it gets its answer.
        return self._notify(self._from_write(old.kind, record, write))

    async def delete(self, old: StoredObject) -> StoredObject:
        """Return the last content at the revision of the deletion. Raise store.Conflict as `update`."""
        try:
            record = await self.store.delete(old.key, expected=old.revision)
        except KeyNotFound:
            raise not_found(old.kind, old.name) from None
        self._retire(old.revision, record.revision)
        return self._notify(self._opened(old.kind, old.key, record.value, record.revision), gone=True)

    def _notify(self, stored: StoredObject, *, gone: bool = False) -> StoredObject:
        for observer in self.observers:
            observer(stored, gone=gone)
        return stored

    def unsaved(self, kind: Kind, namespace: str, document: Plain, revision: int = 0) -> StoredObject:
        """An object that is shown but not stored."""
        return StoredObject(
            kind, key_of(kind, namespace, document["metadata"]["name"]), storage_form(kind, document), revision
        )

    def dry_run(self, kind: Kind, namespace: str, document: Plain, revision: int = 0) -> StoredObject:
        """The object that a write would have stored."""
        made = self.unsaved(kind, namespace, document, revision)
        self._check_size(kind, document, made.size)
        return made

    def _check_size(self, kind: Kind, document: Plain, size: int, before: int = 0) -> None:
        """Raise 413 for an object that is too large. One that was larger before may shrink."""
        if size > self._largest and size >= before:
            raise object_too_large(kind.kind, document["metadata"].get("name", ""), size, self._largest)

    def _from_write(self, kind: Kind, record: Record, write: _Underway) -> StoredObject:
        """The object of a write. It need not be decoded: the writer has the document."""
        found = self._cache.get(record.revision)
        if found is not None:  # a watcher was quicker, and both must share one object
            return found
        # A copy: the caller's document is that of the request, and its resourceVersion is the old one.
        metadata: Mapping[str, Any] = {**write.document["metadata"], "resourceVersion": str(record.revision)}
        document = {**write.document, "metadata": metadata}
        stored = StoredObject(kind, record.key, write.value, record.revision, document, write.precomputed)
        return self._remember(stored)

    def _retire(self, revision: int, at: int) -> None:
        """Note that a revision was replaced by a later one. Only watches still need it; the oldest leave the cache."""
        # It is not dropped at once: slow watches still have to send it, and would decode it each for itself.
        found = self._cache.get(revision)
        size = found.size if found is not None else 0
        self._superseded.append(_Superseded(revision, at, size))
        self._superseded_bytes += size
        while self._superseded and self._is_too_much(self._superseded[0]):
            oldest = self._superseded.popleft()
            self._superseded_bytes -= oldest.size
            self._forget(oldest.revision)

    def _is_too_much(self, oldest: _Superseded) -> bool:
        if len(self._superseded) > SUPERSEDED or self._superseded_bytes > SUPERSEDED_BYTES:
            return True
        return oldest.at <= self.store.compacted

    def _remember(self, stored: StoredObject) -> StoredObject:
        now, warm, cache = self._clock.monotonic(), self._warm, self._cache
        cache[stored.revision] = stored
        warm.append((now, stored.revision))
        # Objects that nobody has written for a while become slim.
        while now - warm[0][0] > WARM_SECONDS:
            old = cache.get(warm.popleft()[1])
            if old is not None:
                old.slim()
        if stored.size >= LONG:
            self._remember_long(stored)
        # Insertion order, not use: revisions grow, so the first is the oldest, and a hit costs no bookkeeping.
        if len(cache) > self._cached:
            self._forget(next(iter(cache)))
        return stored

    def _remember_long(self, stored: StoredObject) -> None:
        self._long[stored.revision] = stored.size
        self._long_bytes += stored.size
        while self._long_bytes > LONG_BYTES and len(self._long) > 1:
            self._forget(next(iter(self._long)))

    def _forget(self, revision: int) -> None:
        self._cache.pop(revision, None)
        self._long_bytes -= self._long.pop(revision, 0)


__all__ = ["CHANGED", "Conflict", "KeyExists", "ObjectStore", "conflict", "key_of", "not_found", "prefix_of"]
