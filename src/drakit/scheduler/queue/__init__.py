"""Pods that wait to be scheduled: in which order, for how long, and what wakes them.

`SchedulingQueue` is the whole of it; `QueuedPod` is a pod with what is remembered of its attempts.
"""

from drakit.scheduler.queue.queue import SchedulingQueue
from drakit.scheduler.queue.queuedpod import Part, QueuedPod

__all__ = ["Part", "QueuedPod", "SchedulingQueue"]
