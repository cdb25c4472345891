"""A scheduler's configuration as the scheduler reads it: checked, with all defaults filled in.

In:  `loader` reads it from a file; `default_configuration` is the one without a file.
Out: the scheduler makes the plugins of each profile (`plugins.profiles`).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from drakit.scheduler.config.args import Args
from drakit.scheduler.config.names import EVERYTHING

DEFAULT_SCHEDULER = "default-scheduler"


class EnabledPlugin(msgspec.Struct, frozen=True):
    """A plugin that is turned on. A weight of 0 means that the file gives none."""

    name: str
    weight: int = 0


class PluginSet(msgspec.Struct, frozen=True):
    """What is on and what is off, at all extension points (`multiPoint`) or at one."""

    enabled: tuple[EnabledPlugin, ...] = ()
    disabled: frozenset[str] = frozenset()


NOTHING_SAID = PluginSet()


class ProfileConfig(msgspec.Struct, frozen=True):
    """`points` are the sets of single extension points, by their name in files (`preFilter`)."""

    scheduler_name: str = DEFAULT_SCHEDULER
    percentage_of_nodes_to_score: int = 0
    multi_point: PluginSet = NOTHING_SAID
    points: Mapping[str, PluginSet] = {}
    args: Mapping[str, Args] = {}

    @property
    def plugins(self) -> tuple[str, ...]:
        """Every plugin that is on somewhere, each once, those of all points first."""
        single = (use.name for each in self.points.values() for use in each.enabled)
        return tuple(dict.fromkeys((*(use.name for use in self.multi_point.enabled), *single)))

    def at(self, point: str) -> tuple[str, ...]:
        """The plugins that are on at a point, in order; those that are on everywhere need not have a part in it.

        First those that the point repeats, in its order; then the rest of those that are on everywhere; then the
        point's own.
        """
        single = self.points.get(point, NOTHING_SAID)
        named = tuple(use.name for use in single.enabled)
        if EVERYTHING in single.disabled:
            return named
        everywhere = [use.name for use in self.multi_point.enabled if use.name not in single.disabled]
        repeated = [name for name in named if name in everywhere]
        return tuple(dict.fromkeys((*repeated, *everywhere, *named)))

    def weight(self, name: str) -> int:
        """The weight of the plugin's score. A weight at the extension point overrides that of `multiPoint`."""
        for each in (self.points.get("score", NOTHING_SAID), self.multi_point):
            for use in each.enabled:
                if use.name == name:
                    return use.weight or 1
        return 1


class LeaderElection(msgspec.Struct, frozen=True):
    """Times are seconds."""

    leader_elect: bool = True
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    resource_lock: str = "leases"
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"


class ClientConnection(msgspec.Struct, frozen=True):
    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = ""
    qps: float = 50.0
    burst: int = 100


class SchedulerConfiguration(msgspec.Struct, frozen=True):
    """Percentages of 0: the scheduler finds a good one. `parallelism` changes nothing here: nodes are looked at in
    sets.
    """

    profiles: tuple[ProfileConfig, ...]
    percentage_of_nodes_to_score: int = 0
    pod_initial_backoff_seconds: float = 1.0
    pod_max_backoff_seconds: float = 10.0
    parallelism: int = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()

    def profile(self, scheduler_name: str) -> ProfileConfig | None:
        """The profile of pods that name this scheduler."""
        return next((each for each in self.profiles if each.scheduler_name == scheduler_name), None)
