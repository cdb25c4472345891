"""What the scheduler knows of nodes and of the pods on them, those included that it has only decided about."""

from drakit.scheduler.cache.cache import SchedulerCache

__all__ = ["SchedulerCache"]
