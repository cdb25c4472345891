"""Tables that can be forked in constant time.

In:  the inventory's writes.
Out: a fork that shares all rows until one side writes; the rows themselves are immutable and always shared.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")
_MOST_FORGOTTEN = 10_000


class Table(Generic[K, V]):
    """A dict with `fork`.

    Invariant: while `_borrowed` is set, another table may have the same `rows`, and they are not written.
    """

    __slots__ = ("_borrowed", "rows")

    def __init__(self, rows: dict[K, V] | None = None, *, borrowed: bool = False) -> None:
        self.rows: dict[K, V] = {} if rows is None else rows
        self._borrowed = borrowed

    def fork(self) -> Table[K, V]:
        self._borrowed = True
        return Table(self.rows, borrowed=True)

    def put(self, key: K, value: V) -> None:
        self._own()
        self.rows[key] = value

    def drop(self, key: K) -> V | None:
        if key not in self.rows:
            return None
        self._own()
        return self.rows.pop(key)

    def get(self, key: K) -> V | None:
        return self.rows.get(key)

    def __contains__(self, key: object) -> bool:
        return key in self.rows

    def __iter__(self) -> Iterator[K]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __eq__(self, other: object) -> bool:
        return self.rows == other.rows if isinstance(other, Table) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def _own(self) -> None:
        if self._borrowed:
            self.rows, self._borrowed = dict(self.rows), False


class SharedCache(Generic[K, V]):
    """Computed values by key. Forks share them for as long as they would compute the same.

    Invariant: forks that share `rows` would compute the same value for every key. So a row that one of them adds serves
    all. A fork that forgets a row copies the rows first, and the others keep theirs.

    `forgotten` are the keys of rows that were forgotten, in order: who has read a part of it goes on from there.
    Another list means that all may have been forgotten.
    """

    __slots__ = ("_shared", "forgotten", "rows")

    def __init__(self, rows: dict[K, V] | None = None, *, shared: bool = False) -> None:
        self.rows: dict[K, V] = {} if rows is None else rows
        self.forgotten: list[K] = []
        self._shared = shared

    def fork(self) -> SharedCache[K, V]:
        self._shared = True
        return SharedCache(self.rows, shared=True)

    def forget(self, key: K) -> None:
        if self._shared:
            self.rows, self._shared = dict(self.rows), False
        self.rows.pop(key, None)
        if len(self.forgotten) >= _MOST_FORGOTTEN:
            self.forgotten = []
        self.forgotten.append(key)

    def forget_all(self) -> None:
        self.rows, self._shared, self.forgotten = {}, False, []
