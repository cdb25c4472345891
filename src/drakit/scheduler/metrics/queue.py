"""What the queue tells while it works; how many pods wait in which part is asked of it (`SchedulingQueue.pending`)."""

from __future__ import annotations

from typing import Protocol


class QueueObserver(Protocol):
    def incoming(self, part: str, event: str) -> None:
        """A pod came into a part of the queue, because of that event (`scheduler_queue_incoming_pods_total`)."""
        ...

    def unschedulable(self, plugin: str, profile: str, change: int) -> None:
        """So many pods more or fewer wait because of a plugin (`scheduler_unschedulable_pods`)."""
        ...
