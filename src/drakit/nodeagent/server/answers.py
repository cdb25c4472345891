"""Answers of the API server about callers, kept for a while: a watched log is not asked about every second.

In:  a question and how to ask it.
Out: its answer, at most so old; failures are not kept.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from drakit.base.clock import Clock

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

MOST_ANSWERS = 1000


class AnswerCache(Generic[K, V]):
    """Invariant: holds at most so many answers, the oldest goes first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[K, tuple[float, V]] = {}

    async def get(self, key: K, ask: Callable[[], Awaitable[V]], seconds: Callable[[V], float]) -> V:
        """The answer that is kept, or a new one, which is good for `seconds` of it."""
        kept = self._kept.get(key)
        if kept is not None and self._clock.monotonic() < kept[0]:
            return kept[1]
        answer = await ask()
        self._kept.pop(key, None)
        if len(self._kept) >= MOST_ANSWERS:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = (self._clock.monotonic() + seconds(answer), answer)
        return answer
