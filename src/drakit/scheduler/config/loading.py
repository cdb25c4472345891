"""A configuration file to a SchedulerConfiguration.

In:  text of a KubeSchedulerConfiguration (`kubescheduler.config.k8s.io/v1`), YAML or JSON, and the feature gates.
Out: the configuration; or InvalidObject with every unknown field, wrong type and bad value, each with its path.
"""

from __future__ import annotations

from drakit.base.gates import FeatureGates
from drakit.scheduler.config.model import PluginSet, Profile, SchedulerConfiguration, Use
from drakit.scheduler.config.names import default_plugins


def default_configuration(gates: FeatureGates | None = None) -> SchedulerConfiguration:
    """What a scheduler does that is told nothing."""
    plugins = default_plugins(gates or FeatureGates.defaults())
    enabled = PluginSet(tuple(Use(name, weight) for name, weight in plugins))
    return SchedulerConfiguration(profiles=(Profile(multi_point=enabled),))


def load_configuration(
    data: bytes | str, *, source: str = "", gates: FeatureGates | None = None
) -> SchedulerConfiguration:
    """Read a configuration file; `source` is its name in errors."""
    raise NotImplementedError(source or str(len(data)))
