"""Verdicts that still hold: which nodes will do for a plan, and which will not.

In:  the nodes that an inventory touches as it changes.
Out: what was found out about all others, for a look-up each: of hundreds of nodes, the pod before changed one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from drakit.allocator.search.search import Answer

_MAX_ENTRIES = 20_000


class Journal:
    """Nodes whose devices, or the use of them, changed, in order. `end` counts up for ever."""

    __slots__ = ("_entries", "_start")

    def __init__(self) -> None:
        self._entries: list[str] = []
        self._start = 0

    @property
    def end(self) -> int:
        return self._start + len(self._entries)

    def add(self, nodes: Iterable[str]) -> None:
        if len(self._entries) >= _MAX_ENTRIES:
            self.add_all()
        self._entries.extend(nodes)

    def add_all(self) -> None:
        """Every node may have changed."""
        self._start = self.end + 1
        self._entries.clear()

    def since(self, mark: int) -> list[str] | None:
        """The nodes that changed since `end` was that; none when every node may have."""
        return self._entries[mark - self._start :] if mark >= self._start else None


class Refused(NamedTuple):
    """A node that will not do. `plain`: there is no more to say than that the claims cannot be allocated there."""

    position: int
    answer: Answer
    plain: bool


class Known:
    """What one plan knows of the nodes of one inventory."""

    __slots__ = ("_journal", "_mark", "fits", "left", "refusals")

    def __init__(self) -> None:
        self.fits: set[str] = set()
        self.refusals: dict[str, tuple[Answer, bool]] = {}
        self.left: dict[str, int] = {}  # devices that stay free
        self._journal: Journal | None = None
        self._mark = 0

    def catch_up(self, journal: Journal) -> None:
        """Forget what may have changed."""
        changed = journal.since(self._mark) if journal is self._journal else None
        if changed is None:
            self.clear()
        else:
            for node in changed:
                self.fits.discard(node)
                self.refusals.pop(node, None)
                self.left.pop(node, None)
        self._journal, self._mark = journal, journal.end

    def clear(self) -> None:
        self.fits.clear()
        self.refusals.clear()
        self.left.clear()

    def __len__(self) -> int:
        return len(self.fits) + len(self.refusals)
