"""PrioritySort: pods of higher priority first; of the same priority, those first that have waited longer.

The queue sorts so for all profiles (`QueuedPod.order`): the plugin stands for that in configurations.
"""

from __future__ import annotations

from drakit.scheduler.config.names import PRIORITY_SORT


class PrioritySort:
    name = PRIORITY_SORT
