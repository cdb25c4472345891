"""Dynamic resources: pods get the devices that their claims ask for.

`DynamicResources` is the plugin. See `plugin` for how it is put together.
"""

from drakit.scheduler.dynamicresources.explanation import Explanation, explain
from drakit.scheduler.dynamicresources.plugin import DynamicResources
from drakit.scheduler.dynamicresources.state.context import NAME, PluginContext

__all__ = ["NAME", "DynamicResources", "Explanation", "PluginContext", "explain"]
