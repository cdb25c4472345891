"""A watch that is judged event by event, against the history of the store.

In:  a client whose connections break, lag and are refused like everybody's; the history that the judge has kept.
Out: violations: an event that is missing, comes again, comes out of order, or is not what happened; a bookmark that
     promises too much. A watch that breaks off is resumed from the last event or bookmark that it had.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

from drakit.base.errors import DrakitError
from drakit.client import Client, Expired, Resource, key_of

_PAUSE = 1.0
BOOKMARK = "BOOKMARK"


class HistoryEntry(NamedTuple):
    """A write of the store: what a watch must call it."""

    revision: int
    name: str
    type: str


class WriteHistory:
    """Every write to the resources that are watched, in order."""

    def __init__(self) -> None:
        self._entries: dict[str, list[HistoryEntry]] = defaultdict(list)

    def add(self, resource: str, entry: HistoryEntry) -> None:
        self._entries[resource].append(entry)

    def between(self, resource: str, after: int, before: int) -> list[HistoryEntry]:
        """Writes after one revision and before another."""
        entries = self._entries[resource]
        first = bisect_right(entries, after, key=lambda entry: entry.revision)
        return entries[first : bisect_left(entries, before, key=lambda entry: entry.revision)]

    def at(self, resource: str, revision: int) -> HistoryEntry | None:
        found = self.between(resource, revision - 1, revision + 1)
        return found[0] if found else None


class ShadowWatch:
    """Follows one resource by plain list and watch."""

    def __init__(
        self, client: Client, resource: Resource[Any], history: WriteHistory, violate: Callable[[str], None]
    ) -> None:
        self._client = client
        self._resource = resource
        self._plural = resource.kind.plural
        self._history = history
        self._violate = violate
        self._version = 0
        """The last revision that this watch was told of; 0: it has to begin anew."""

    def begin(self, revision: int) -> None:
        """What was written up to this revision is known."""
        self._version = revision

    async def run(self) -> None:
        while True:
            try:
                await self._follow()
            except Expired:
                self._version = 0
            except DrakitError:
                pass  # the next try goes on from where this one was
            await self._client.clock.sleep(_PAUSE)

    async def _follow(self) -> None:
        if not self._version:
            self.begin(int((await self._client.list(self._resource)).resource_version))
        async with self._client.watch(self._resource, since=str(self._version)) as changes:
            async for change in changes:
                self.take(change.type, int(change.resource_version), change.object)

    def take(self, type_: str, revision: int, obj: Any) -> None:
        last, self._version = self._version, revision
        if type_ == BOOKMARK:
            if revision < last:
                self._violate(f"a bookmark of {self._plural} goes back from {last} to {revision}")
            self._expect_none(last, revision + 1)
            return
        if revision <= last:
            self._violate(f"a watch of {self._plural} is told of {revision} after {last}")
            return
        self._expect_none(last, revision)
        happened = self._history.at(self._plural, revision)
        told = (str(key_of(obj)), type_)
        if happened is None or (happened.name, happened.type) != told:
            self._violate(f"a watch of {self._plural} is told of {told}, and {happened} is what happened")

    def _expect_none(self, after: int, before: int) -> None:
        missed = self._history.between(self._plural, after, before)
        if missed:
            self._violate(f"a watch of {self._plural} missed {missed[0]}")
