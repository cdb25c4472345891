"""Plugins by name: which there are, which are on by default, and where each of them can be turned on.

Order matters: it is the order of the default profile, and plugins are called in it.
"""

from __future__ import annotations

from drakit.base.gates import FeatureGates

SCHEDULING_GATES = "SchedulingGates"
PRIORITY_SORT = "PrioritySort"
NODE_UNSCHEDULABLE = "NodeUnschedulable"
NODE_NAME = "NodeName"
TAINT_TOLERATION = "TaintToleration"
NODE_AFFINITY = "NodeAffinity"
NODE_PORTS = "NodePorts"
NODE_RESOURCES_FIT = "NodeResourcesFit"
DYNAMIC_RESOURCES = "DynamicResources"
POD_TOPOLOGY_SPREAD = "PodTopologySpread"
INTER_POD_AFFINITY = "InterPodAffinity"
BALANCED_ALLOCATION = "NodeResourcesBalancedAllocation"
DEFAULT_BINDER = "DefaultBinder"
GANG_SCHEDULING = "GangScheduling"

DEFAULTS: tuple[tuple[str, int], ...] = (
    (SCHEDULING_GATES, 0),
    (PRIORITY_SORT, 0),
    (NODE_UNSCHEDULABLE, 0),
    (NODE_NAME, 0),
    (TAINT_TOLERATION, 3),
    (NODE_AFFINITY, 2),
    (NODE_PORTS, 0),
    (NODE_RESOURCES_FIT, 1),
    (DYNAMIC_RESOURCES, 2),
    (POD_TOPOLOGY_SPREAD, 2),
    (INTER_POD_AFFINITY, 2),
    (BALANCED_ALLOCATION, 1),
    (DEFAULT_BINDER, 0),
)
"""Name and weight; no weight stands for one."""

GATED = {GANG_SCHEDULING: "GangScheduling"}
"""Plugins that come to the end of the defaults with a gate."""

OURS = frozenset(name for name, _ in DEFAULTS) | frozenset(GATED)

ELSEWHERE = frozenset(
    {
        "DefaultPreemption",
        "ImageLocality",
        "NodeDeclaredFeatures",
        "NodeVolumeLimits",
        "PodGroupPodsCount",
        "TopologyPlacementGenerator",
        "VolumeBinding",
        "VolumeRestrictions",
        "VolumeZone",
    }
)
"""Plugins of kube-scheduler that drakit does not have: a file may name them, they do nothing."""

EVERYTHING = "*"


def default_plugins(gates: FeatureGates) -> tuple[tuple[str, int], ...]:
    """The plugins of a profile that has no `plugins` field."""
    return DEFAULTS + tuple((name, 0) for name, gate in GATED.items() if gates.enabled(gate))
