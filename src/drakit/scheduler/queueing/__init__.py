"""Pods that wait to be scheduled: in which order, for how long, and what wakes them.

`SchedulingQueue` is the whole of it; `QueuedPod` is a pod with what is remembered of its attempts.
"""

from drakit.scheduler.queueing.changes import pod_change
from drakit.scheduler.queueing.metrics import QueueMetrics
from drakit.scheduler.queueing.queue import SchedulingQueue
from drakit.scheduler.queueing.queued import Part, QueuedPod

__all__ = ["Part", "QueueMetrics", "QueuedPod", "SchedulingQueue", "pod_change"]
