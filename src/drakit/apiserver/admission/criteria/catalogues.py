"""All objects of a kind in compiled form, each compiled once per write.

In:  the store, which tells the revision of the last write to the kind.
Out: what `read` made of each object, sorted by name. It is current at each call, so that no request slips past a policy
     that its author has seen stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from drakit.api.objects.plain import Plain
from drakit.api.registry import Kind
from drakit.apiserver.storage.objectstore import ObjectStore, prefix_of

T = TypeVar("T")


class Presence:
    """Whether there are objects of a kind. Invariant: at revision `_absent_at` there were none in any namespace."""

    def __init__(self, objects: ObjectStore, kind: Kind) -> None:
        self._store = objects.store
        self._kind = kind
        self._prefix = prefix_of(kind)
        self._absent_at = -1

    @property
    def is_empty(self) -> bool:
        """Whether there is certainly none: nothing was written since the last count. A shared store must be asked."""
        return self._absent_at == self._store.last_write_revision(self._prefix) and not self._store.shared

    async def is_in(self, namespace: str) -> bool:
        """Whether there is one in a namespace. Counting keys is one look-up: most have none."""
        written = self._store.last_write_revision(self._prefix)
        self._absent_at = -1 if await self._store.count(self._prefix) else written
        return bool(await self._store.count(prefix_of(self._kind, namespace)))


class Catalogue(Generic[T]):
    """Invariant: `_read` has, by revision, the compiled form of every object as of `_seen` or later."""

    def __init__(self, objects: ObjectStore, kind: Kind, read: Callable[[Plain], T]) -> None:
        self._objects = objects
        self._kind = kind
        self._prefix = prefix_of(kind)
        self._make = read
        self._seen = 0
        self._read: dict[int, T] = {}

    @property
    def is_empty(self) -> bool:
        """Whether there is certainly no object. This takes no look at them, and so no waiting."""
        return not self._read and self._seen == self._objects.store.last_write_revision(self._prefix)

    async def all(self) -> Sequence[T]:
        written = self._objects.store.last_write_revision(self._prefix)
        if written != self._seen:
            page = await self._objects.store.list(self._prefix)
            # Objects of a known revision are not compiled again.
            known = self._read
            self._read = {
                record.revision: known[record.revision]
                if record.revision in known
                else self._make(self._objects.from_record(self._kind, record).document)
                for record in page.records
            }
            self._seen = written
        return tuple(self._read.values()) if self._read else ()
