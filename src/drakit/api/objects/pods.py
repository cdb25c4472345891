"""Views of Pod: what is asked for, where it runs, which claims it has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from drakit.api.objects.meta import ObjectMeta
from drakit.api.objects.wire import constant, mapping, nested, text
from drakit.base.labels import LabelSelector
from drakit.base.nodeselectors import NodeSelector, NodeSelectorTerm
from drakit.base.quantity import Quantity
from drakit.base.structs import Model
from drakit.base.taints import Toleration


class ContainerClaim(Model):
    """A container's use of a claim of its pod: all of it, or one request's devices."""

    name: str = text()
    request: str = ""


class ResourceRequirements(Model):
    limits: Mapping[str, Quantity] = mapping()
    requests: Mapping[str, Quantity] = mapping()
    claims: tuple[ContainerClaim, ...] = ()


class EnvVar(Model):
    name: str = text()
    value: str = ""
    value_from: Mapping[str, Any] | None = None


class ContainerPort(Model):
    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = ""
    name: str = ""


class Container(Model):
    name: str = text()
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str = ""
    env: tuple[EnvVar, ...] = ()
    ports: tuple[ContainerPort, ...] = ()
    resources: ResourceRequirements = nested(ResourceRequirements)
    restart_policy: str | None = None


class PodResourceClaim(Model):
    """A claim by name, or a template of which one is made. An entry that is also one of the pod's group is shared."""

    name: str = text()
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGate(Model):
    name: str = text()


class PodSchedulingGroup(Model):
    pod_group_name: str | None = None


class PreferredSchedulingTerm(Model):
    weight: int = 0
    preference: NodeSelectorTerm = nested(NodeSelectorTerm)


class NodeAffinity(Model):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()


class PodAffinityTerm(Model):
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Model):
    weight: int = 0
    pod_affinity_term: PodAffinityTerm = nested(PodAffinityTerm)


class PodAffinity(Model):
    """Also the form of anti-affinity."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class Affinity(Model):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Model):
    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class PodSpec(Model):
    init_containers: tuple[Container, ...] = ()
    containers: tuple[Container, ...] = ()
    ephemeral_containers: tuple[Container, ...] = ()
    restart_policy: str = ""
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    node_selector: Mapping[str, str] = mapping()
    service_account_name: str = ""
    node_name: str = ""
    host_network: bool = False
    affinity: Affinity | None = None
    scheduler_name: str = ""
    tolerations: tuple[Toleration, ...] = ()
    priority_class_name: str = ""
    priority: int | None = None
    preemption_policy: str | None = None
    overhead: Mapping[str, Quantity] = mapping()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    resources: ResourceRequirements | None = None
    scheduling_group: PodSchedulingGroup | None = None


class PodCondition(Model):
    type: str = text()
    status: str = text()
    observed_generation: int = 0
    last_probe_time: str | None = None
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class PodResourceClaimStatus(Model):
    """`resource_claim_name` not set: no claim was needed for this entry."""

    name: str = text()
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(Model):
    container_name: str = text()
    resource_name: str = text()
    request_name: str = text()


class PodExtendedResourceClaimStatus(Model):
    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
    resource_claim_name: str = text()


class NodeAllocatableResourceClaimStatus(Model):
    """What a claim's devices take of the node's cpu, memory and so on, and the containers that use it."""

    resource_claim_name: str = text()
    containers: tuple[str, ...] = ()
    resources: Mapping[str, Quantity] = mapping()


class ContainerStatus(Model):
    name: str = text()
    state: Mapping[str, Any] = mapping()
    ready: bool = False
    restart_count: int = 0
    container_id: str = msgspec.field(default="", name="containerID")
    started: bool | None = None
    resources: ResourceRequirements | None = None
    allocated_resources: Mapping[str, Quantity] = mapping()
    allocated_resources_status: tuple[Mapping[str, Any], ...] = ()


class PodStatus(Model):
    observed_generation: int = 0
    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    message: str = ""
    reason: str = ""
    nominated_node_name: str = ""
    start_time: str | None = None
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    qos_class: str = ""
    resize: str = ""
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    node_allocatable_resource_claim_statuses: tuple[NodeAllocatableResourceClaimStatus, ...] = ()


class Pod(Model):
    kind: str = constant("Pod")
    api_version: str = constant("v1")
    metadata: ObjectMeta = nested(ObjectMeta)
    spec: PodSpec = nested(PodSpec)
    status: PodStatus = nested(PodStatus)

    @property
    def is_terminal(self) -> bool:
        """Whether the pod has ended for good."""
        return self.status.phase in ("Succeeded", "Failed")


class PodTemplateSpec(Model):
    metadata: ObjectMeta = nested(ObjectMeta)
    spec: PodSpec = nested(PodSpec)
