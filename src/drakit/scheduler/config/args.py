"""What plugins can be told, as `pluginConfig[].args` of a configuration file.

Times are seconds. A plugin that is told nothing gets the defaults that stand here.
"""

from __future__ import annotations

from drakit.api.objects.pods import NodeAffinity, TopologySpreadConstraint
from drakit.base.structs import Model

LEAST_ALLOCATED = "LeastAllocated"
MOST_ALLOCATED = "MostAllocated"
REQUESTED_TO_CAPACITY = "RequestedToCapacityRatio"
STRATEGIES = (LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY)

SYSTEM_DEFAULTING = "System"
LIST_DEFAULTING = "List"

BINPACK = "binpack"
SPREAD = "spread"
DEVICE_STRATEGIES = (BINPACK, SPREAD)

FILTER_TIMEOUT = 10.0
BINDING_TIMEOUT = 600.0


class ResourceSpec(Model):
    name: str = ""
    weight: int = 1


CPU_AND_MEMORY = (ResourceSpec(name="cpu"), ResourceSpec(name="memory"))


class ShapePoint(Model):
    """The score (0 to 10) at a utilization (0 to 100 percent). Between two points the score is interpolated."""

    utilization: int = 0
    score: int = 0


class RequestedToCapacityRatio(Model):
    shape: tuple[ShapePoint, ...] = ()


class ScoringStrategy(Model):
    type: str = LEAST_ALLOCATED
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY
    requested_to_capacity_ratio: RequestedToCapacityRatio | None = None


class NodeResourcesFitArgs(Model):
    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy()


class NodeResourcesBalancedAllocationArgs(Model):
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY


class NodeAffinityArgs(Model):
    """`added_affinity` holds for every pod of the profile, on top of its own."""

    added_affinity: NodeAffinity | None = None


class InterPodAffinityArgs(Model):
    """`hard_pod_affinity_weight`: what a required term of a pod on a node makes the node liked by pods it selects."""

    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class PodTopologySpreadArgs(Model):
    """Constraints of pods that have none. `System`: those of Kubernetes, for pods of a ReplicaSet."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = SYSTEM_DEFAULTING


class DynamicResourcesArgs(Model):
    """`filter_timeout` 0 or None: no limit. `binding_timeout` None: binding conditions are off.

    drakit's own: `device_strategy` prefers nodes where few (`binpack`) or many (`spread`) devices that the pod could
    use are free, empty does neither; `preemption` lets a pod evict pods of lower priority for their devices.
    """

    filter_timeout: float | None = FILTER_TIMEOUT
    binding_timeout: float | None = BINDING_TIMEOUT
    device_strategy: str = ""
    preemption: bool = False


Args = (
    NodeResourcesFitArgs
    | NodeResourcesBalancedAllocationArgs
    | NodeAffinityArgs
    | InterPodAffinityArgs
    | PodTopologySpreadArgs
    | DynamicResourcesArgs
    | None
)
"""What a plugin is made with; None for one that takes nothing."""
