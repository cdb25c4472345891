"""The scheduler: which node a pod runs on, and which devices it gets there.

`Scheduler(client).run()` is the whole of it. What a plugin is stands in `framework`.
"""

from drakit.scheduler.scheduler import Scheduler

__all__ = ["Scheduler"]
