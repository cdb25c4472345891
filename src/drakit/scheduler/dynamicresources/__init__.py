"""Dynamic resources: pods get the devices that their claims ask for.

`DynamicResources` is the plugin. See `plugin` for how it is put together.
"""

from drakit.scheduler.dynamicresources.context import NAME, Context
from drakit.scheduler.dynamicresources.explaining import Explanation, explain
from drakit.scheduler.dynamicresources.plugin import DynamicResources

__all__ = ["NAME", "Context", "DynamicResources", "Explanation", "explain"]
