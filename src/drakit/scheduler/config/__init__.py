"""How a scheduler is set up: a KubeSchedulerConfiguration file, or nothing at all.

`load_configuration(text)` reads a file and says everything that is wrong with it; `default_configuration()` is what an
empty one gives. The outcome is frozen data; `drakit.scheduler.plugins` makes plugins of it.
"""

from drakit.scheduler.config.args import (
    Args,
    DynamicResourcesArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
)
from drakit.scheduler.config.loader import default_configuration, load_configuration
from drakit.scheduler.config.model import (
    DEFAULT_SCHEDULER,
    EnabledPlugin,
    LeaderElection,
    PluginSet,
    ProfileConfig,
    SchedulerConfiguration,
)

__all__ = [
    "DEFAULT_SCHEDULER",
    "Args",
    "DynamicResourcesArgs",
    "EnabledPlugin",
    "LeaderElection",
    "NodeAffinityArgs",
    "NodeResourcesBalancedAllocationArgs",
    "NodeResourcesFitArgs",
    "PluginSet",
    "ProfileConfig",
    "SchedulerConfiguration",
    "default_configuration",
    "load_configuration",
]
