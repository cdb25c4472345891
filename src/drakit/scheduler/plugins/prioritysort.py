"""PrioritySort: pods of higher priority first; of the same priority, those first that have waited longer."""

from __future__ import annotations

from drakit.api.pods import Pod
from drakit.scheduler.config.names import PRIORITY_SORT


class PrioritySort:
    name = PRIORITY_SORT

    @staticmethod
    def key(pod: Pod, since: float) -> tuple[int, float]:
        """What a queue sorts by, the smallest first; `since` is when the pod came to wait."""
        return -(pod.spec.priority or 0), since
