"""All objects of a kind, each read once per write.

In:  the store.
Out: what a reader made of each object, in the order of names; current at the time of asking, so that no request slips
     past a policy that its author has seen stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from drakit.api.registry import Kind
from drakit.apiserver.keeping import Keeper, prefix_of
from drakit.apiserver.objects import Plain

T = TypeVar("T")


class Catalogue(Generic[T]):
    """Invariant: `_read` holds what was made of each object that was there at the last look, by its last revision."""

    def __init__(self, keeper: Keeper, kind: Kind, read: Callable[[Plain], T]) -> None:
        self._keeper = keeper
        self._kind = kind
        self._prefix = prefix_of(kind)
        self._make = read
        self._read: dict[int, T] = {}

    async def all(self) -> list[T]:
        page = await self._keeper.store.list(self._prefix)
        if not page.records and not self._read:
            return []
        known = self._read
        self._read = {
            record.revision: known[record.revision]
            if record.revision in known
            else self._make(self._keeper.kept(self._kind, record).document)
            for record in page.records
        }
        return list(self._read.values())
