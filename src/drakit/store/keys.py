"""An ordered set of keys, for ranges.

A list of sorted chunks: adding or removing a key moves at most one chunk (a single sorted list moves half a megabyte
per key at a hundred thousand keys), and a range is a few slices.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right, insort
from functools import lru_cache

CHUNK = 1024


@lru_cache(maxsize=1024)
def end_of(prefix: str) -> str | None:
    """The least string greater than every string with this prefix; none if there is no such string."""
    stem = prefix.rstrip(chr(sys.maxunicode))
    return stem[:-1] + chr(ord(stem[-1]) + 1) if stem else None


class KeyIndex:
    """Invariant: chunks are sorted, not empty (save a single first one) and of at most 2 * CHUNK keys; `_firsts[i]`
    is not greater than any key of chunk i, and greater than every key of chunk i - 1.
    """

    def __init__(self) -> None:
        self._chunks: list[list[str]] = [[]]
        self._firsts: list[str] = [""]
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, key: str) -> None:
        """Add a key that is not there."""
        place = bisect_right(self._firsts, key) - 1
        chunk = self._chunks[place]
        insort(chunk, key)
        self._size += 1
        if len(chunk) > 2 * CHUNK:
            self._split(place)

    def remove(self, key: str) -> None:
        """Remove a key that is there."""
        place = bisect_right(self._firsts, key) - 1
        chunk = self._chunks[place]
        del chunk[bisect_left(chunk, key)]
        self._size -= 1
        # The first chunk stays, even if it is empty: every key has a chunk whose first is not greater.
        if not chunk and place:
            del self._chunks[place]
            del self._firsts[place]

    def between(self, start: str, end: str | None, limit: int = 0) -> list[str]:
        """Keys from `start` on and before `end`, in order; at most `limit` if that is positive."""
        first, low, last, high = self._bounds(start, end)
        if first == last:
            return self._chunks[first][low : min(high, low + limit) if limit else high]
        keys = self._chunks[first][low:]
        for place in range(first + 1, last + 1):
            if limit and len(keys) >= limit:
                break
            keys += self._chunks[place] if place < last else self._chunks[place][:high]
        return keys[:limit] if limit else keys

    def count(self, start: str, end: str | None) -> int:
        """How many keys `between` would return without a limit."""
        first, low, last, high = self._bounds(start, end)
        if first == last:
            return max(high - low, 0)
        return len(self._chunks[first]) - low + high + sum(len(self._chunks[place]) for place in range(first + 1, last))

    def _bounds(self, start: str, end: str | None) -> tuple[int, int, int, int]:
        """Chunk and position of the first key, and of the one after the last."""
        first = bisect_right(self._firsts, start) - 1
        low = bisect_left(self._chunks[first], start)
        if end is None:
            last = len(self._chunks) - 1
            return first, low, last, len(self._chunks[last])
        last = max(bisect_right(self._firsts, end) - 1, first)
        return first, low, last, bisect_left(self._chunks[last], end)

    def _split(self, place: int) -> None:
        chunk = self._chunks[place]
        tail = chunk[CHUNK:]
        del chunk[CHUNK:]
        self._chunks.insert(place + 1, tail)
        self._firsts.insert(place + 1, tail[0])
