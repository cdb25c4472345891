"""How long a container that ended waits before it is started again.

The first restart comes at once. Each one after it waits twice as long as the one before: 10 s, 20 s, … up to 5 minutes,
counted from the container's end. A container that ran for more than 10 minutes starts over.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from drakit.base.clock import Clock
from drakit.nodeagent.runtimes.contract import PodIdentity

INITIAL_SECONDS = 10.0
MOST_SECONDS = 300.0


@dataclass(slots=True)
class _Entry:
    seconds: float
    updated: datetime


class RestartBackoff:
    """For all containers of a node, by pod uid and container name."""

    def __init__(self, *, clock: Clock, initial: float = INITIAL_SECONDS, most: float = MOST_SECONDS) -> None:
        self._clock = clock
        self._initial = initial
        self._most = most
        self._entries: dict[tuple[str, str], _Entry] = {}

    def wait(self, pod_uid: str, container: str, *, finished: datetime) -> float:
        """Seconds until the container may be started; 0 when it may now."""
        entry = self._entries.get((pod_uid, container))
        if entry is None or self._is_over(entry, finished):
            return 0.0
        passed = (self._clock.now() - finished).total_seconds()
        return max(entry.seconds - passed, 0.0)

    def started(self, pod_uid: str, container: str, *, finished: datetime) -> None:
        """The container that had ended at `finished` is being started again: the next wait is longer."""
        entry = self._entries.get((pod_uid, container))
        fresh = entry is None or self._is_over(entry, finished)
        seconds = self._initial if entry is None or fresh else min(entry.seconds * 2, self._most)
        self._entries[pod_uid, container] = _Entry(seconds, self._clock.now())

    def seconds(self, pod_uid: str, container: str) -> float:
        """The whole wait that holds now; 0 without one."""
        entry = self._entries.get((pod_uid, container))
        return 0.0 if entry is None else entry.seconds

    def forget(self, pod_uid: str) -> None:
        for key in [key for key in self._entries if key[0] == pod_uid]:
            del self._entries[key]

    def message(self, pod: PodIdentity, container: str) -> str:
        """Of the waiting state CrashLoopBackOff, and of the event BackOff."""
        wait = go_duration(self.seconds(pod.uid, container))
        return f"back-off {wait} restarting failed container={container} pod={pod.name}_{pod.namespace}({pod.uid})"

    def _is_over(self, entry: _Entry, finished: datetime) -> bool:
        return (finished - entry.updated).total_seconds() > 2 * self._most


def go_duration(seconds: float) -> str:
    """As Go writes a duration of whole seconds: `40s`, `1m20s`, `5m0s`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{rest}s"
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
