"""A KubeSchedulerConfiguration as it stands in a file: every field optional, times as text.

`reader` decodes a file into these structs, `loader` converts them to a SchedulerConfiguration.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from drakit.base.structs import Model
from drakit.scheduler.config.args import (
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
)
from drakit.scheduler.config.names import (
    BALANCED_ALLOCATION,
    DYNAMIC_RESOURCES,
    INTER_POD_AFFINITY,
    NODE_AFFINITY,
    NODE_RESOURCES_FIT,
    POD_TOPOLOGY_SPREAD,
)

GROUP_VERSION = "kubescheduler.config.k8s.io/v1"
KIND = "KubeSchedulerConfiguration"


class WirePlugin(Model):
    name: str = ""
    weight: int = 0


class WirePluginSet(Model):
    enabled: tuple[WirePlugin, ...] = ()
    disabled: tuple[WirePlugin, ...] = ()


class WirePlugins(Model):
    multi_point: WirePluginSet = WirePluginSet()
    pre_enqueue: WirePluginSet = WirePluginSet()
    queue_sort: WirePluginSet = WirePluginSet()
    pre_filter: WirePluginSet = WirePluginSet()
    filter: WirePluginSet = WirePluginSet()
    post_filter: WirePluginSet = WirePluginSet()
    pre_score: WirePluginSet = WirePluginSet()
    score: WirePluginSet = WirePluginSet()
    reserve: WirePluginSet = WirePluginSet()
    permit: WirePluginSet = WirePluginSet()
    pre_bind: WirePluginSet = WirePluginSet()
    bind: WirePluginSet = WirePluginSet()
    post_bind: WirePluginSet = WirePluginSet()
    placement_generate: WirePluginSet = WirePluginSet()
    placement_score: WirePluginSet = WirePluginSet()


class WirePluginConfig(Model):
    name: str = ""
    args: Any = None


class WireProfile(Model):
    scheduler_name: str | None = None
    percentage_of_nodes_to_score: int | None = None
    plugins: WirePlugins = WirePlugins()
    plugin_config: tuple[WirePluginConfig, ...] = ()


class WireLeaderElection(Model):
    leader_elect: bool = True
    lease_duration: str = "15s"
    renew_deadline: str = "10s"
    retry_period: str = "2s"
    resource_lock: str = "leases"
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"


class WireClientConnection(Model):
    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = ""
    qps: float = 50.0
    burst: int = 100


class WireConfiguration(Model):
    """Profiling and `delayCacheUntilActive` are taken and change nothing."""

    api_version: str = ""
    kind: str = ""
    parallelism: int = 16
    leader_election: WireLeaderElection = WireLeaderElection()
    client_connection: WireClientConnection = WireClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    percentage_of_nodes_to_score: int = 0
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    profiles: tuple[WireProfile, ...] = ()
    extenders: tuple[Mapping[str, Any], ...] = ()
    delay_cache_until_active: bool = False


class WireDynamicResourcesArgs(Model):
    filter_timeout: str | None = None
    binding_timeout: str | None = None
    device_strategy: str = ""
    preemption: bool = False


ARGS: Mapping[str, type[Model]] = {
    NODE_RESOURCES_FIT: NodeResourcesFitArgs,
    BALANCED_ALLOCATION: NodeResourcesBalancedAllocationArgs,
    NODE_AFFINITY: NodeAffinityArgs,
    INTER_POD_AFFINITY: InterPodAffinityArgs,
    POD_TOPOLOGY_SPREAD: PodTopologySpreadArgs,
    DYNAMIC_RESOURCES: WireDynamicResourcesArgs,
}
"""Plugins that can be told something, and what."""

POINTS: Mapping[str, str] = {
    field.name: field.encode_name for field in msgspec.structs.fields(WirePlugins) if field.name != "multi_point"
}
"""The extension points: attribute of WirePlugins, name in files."""
