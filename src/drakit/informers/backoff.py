"""How long to wait after a failure: longer each time, with some chance in it, so that not all come back at once.

In:  failures, on the injected clock.
Out: seconds. The first failure after a healthy stretch is tried again at once.
"""

from __future__ import annotations

from random import Random

from drakit.base.clock import Clock


class Backoff:
    def __init__(
        self, clock: Clock, random: Random, *, first: float = 0.8, longest: float = 30.0, healthy: float = 60.0
    ) -> None:
        """`healthy` seconds without a failure are a new start."""
        self._clock = clock
        self._random = random
        self._first = first
        self._longest = longest
        self._healthy = healthy
        self._failures = 0
        self._until = clock.monotonic()

    def failed(self) -> float:
        """Count a failure; the seconds to wait before the next try."""
        now = self._clock.monotonic()
        if now - self._until >= self._healthy:
            self._failures = 0
        step = min(self._first * 2.0 ** (self._failures - 1), self._longest) if self._failures else 0.0
        self._failures = min(self._failures + 1, 64)
        wait = step * (1 + self._random.random())
        self._until = now + wait
        return wait
