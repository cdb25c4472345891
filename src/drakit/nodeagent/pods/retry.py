"""When a worker looks at its pod again; after a failure: 1 s, 2 s, 4 s, ... at most 10 s."""

from __future__ import annotations

from dataclasses import dataclass

AGAIN = 0.0
AT_ONCE = 1e-9
"""A wait like any other: the least of several counts."""
NEVER = None
"""When something changes."""
FIRST_SECONDS = 1.0
LONGEST_SECONDS = 10.0


@dataclass(slots=True)
class Retry:
    """The next try after a failure. `pending` while the worker waits for it."""

    failures: int = 0
    pending: bool = False

    def failed(self) -> float:
        wait = min(FIRST_SECONDS * 2.0**self.failures, LONGEST_SECONDS)
        self.failures, self.pending = min(self.failures + 1, 16), True
        return wait

    def reset(self) -> None:
        self.failures, self.pending = 0, False
