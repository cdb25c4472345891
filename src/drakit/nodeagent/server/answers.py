"""Cache of the answers of TokenReview and SubjectAccessReview.

In:  a key, and how to ask the API server.
Out: the answer, from the cache while it is fresh. Failures are not cached.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from drakit.base.clock import Clock

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

MOST_ANSWERS = 1000


class AnswerCache(Generic[K, V]):
    """Invariant: at most `MOST_ANSWERS` entries; the oldest is dropped first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[K, tuple[float, V]] = {}

    async def get(self, key: K, ask: Callable[[], Awaitable[V]], seconds: Callable[[V], float]) -> V:
        """The cached answer, or a new one. `seconds` says for how long a new answer is cached."""
        kept = self._kept.get(key)
        if kept is not None and self._clock.monotonic() < kept[0]:
            return kept[1]
        answer = await ask()
        # A dict keeps the place of a key that is set again: without this the freshest answer could be dropped as the
        # oldest.
        self._kept.pop(key, None)
        if len(self._kept) >= MOST_ANSWERS:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = (self._clock.monotonic() + seconds(answer), answer)
        return answer
