"""Metrics of the scheduler, under the names that kube-scheduler gives them.

attempts     attempts, queue, cache, preemption
podgroups    attempts at pod groups
devices      binding conditions, claims for extended resources
timing       how long extension points and plugins take
"""

from drakit.scheduler.metrics.attempts import AttemptResult, SchedulerMetrics
from drakit.scheduler.metrics.devices import ClaimMetrics, DeviceMetrics
from drakit.scheduler.metrics.podgroups import PodGroupMetrics
from drakit.scheduler.metrics.queue import QueueObserver
from drakit.scheduler.metrics.timing import Laps

__all__ = [
    "AttemptResult",
    "ClaimMetrics",
    "DeviceMetrics",
    "Laps",
    "PodGroupMetrics",
    "QueueObserver",
    "SchedulerMetrics",
]
