"""Pods that are scheduled together: all of a gang's minimum, or none.

`GangScheduling` is the plugin that holds members back until there are enough of them; `attempts` tries them together;
`conditions` tells the PodGroup what became of it.
"""

from drakit.scheduler.gangs.plugin import GangScheduling

__all__ = ["GangScheduling"]
