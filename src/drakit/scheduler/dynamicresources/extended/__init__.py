"""Extended resources that devices provide (KEP-5004, gate DRAExtendedResource).

In:  pods that ask for resources by name, classes that stand behind these names.
Out: one special claim per pod, on nodes that do not have the resource themselves.
"""

from drakit.scheduler.dynamicresources.extended.attempts import ExtendedAttempt, begin_attempt
from drakit.scheduler.dynamicresources.extended.hints import GATE
from drakit.scheduler.dynamicresources.extended.resources import Extended

__all__ = ["GATE", "Extended", "ExtendedAttempt", "begin_attempt"]
