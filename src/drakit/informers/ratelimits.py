"""How soon a key that failed may be tried again.

In:  keys that failed, the injected clock.
Out: seconds to wait: twice as long each time for one key, and not more than so many per second for all together.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from drakit.base.clock import Clock

K = TypeVar("K", bound=Hashable)


class Bucket:
    """A token bucket. A token may be taken before it is due: the taker waits for the returned time."""

    def __init__(self, clock: Clock, *, rate: float, burst: int) -> None:
        self._clock = clock
        self._rate = rate
        self._burst = float(burst)
        self._tokens = float(burst)
        self._last = clock.monotonic()

    def take(self) -> float:
        """Take a token; the seconds until it is due."""
        now = self._clock.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._last) * self._rate)
        self._last = now
        self._tokens -= 1
        return 0.0 if self._tokens >= 0 else -self._tokens / self._rate


class RetryLimits(Generic[K]):
    """Upstream's defaults: 5 ms doubling up to 1,000 s for a key; 10 per second, in bursts of 100, for all."""

    def __init__(
        self,
        clock: Clock,
        *,
        first: float = 0.005,
        longest: float = 1000.0,
        rate: float = 10.0,
        burst: int = 100,
    ) -> None:
        self._first = first
        self._longest = longest
        self._bucket = Bucket(clock, rate=rate, burst=burst)
        self._failures: dict[K, int] = {}

    def when(self, key: K) -> float:
        """Count a failure of the key; the seconds until it may be tried again."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        own = min(self._first * 2.0 ** min(failures, 64), self._longest)
        return max(own, self._bucket.take())

    def failures(self, key: K) -> int:
        return self._failures.get(key, 0)

    def forget(self, key: K) -> None:
        """Reset the backoff of a key: its next failure counts as the first."""
        self._failures.pop(key, None)
