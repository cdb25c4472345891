"""Workload and PodGroup of `scheduling.k8s.io/v1alpha2`: pods that are scheduled together and may share claims."""

from __future__ import annotations

from drakit.api.objects.meta import Condition, ObjectMeta
from drakit.api.objects.wire import constant, nested, nothing, number, text
from drakit.base.structs import Model


class BasicSchedulingPolicy(Model):
    """Pods of the group are scheduled one by one."""


class GangSchedulingPolicy(Model):
    min_count: int = number()


class PodGroupSchedulingPolicy(Model):
    """Exactly one of the fields is set."""

    basic: BasicSchedulingPolicy | None = None
    gang: GangSchedulingPolicy | None = None


class TopologyConstraint(Model):
    key: str = text()


class PodGroupSchedulingConstraints(Model):
    topology: tuple[TopologyConstraint, ...] = ()


class PodGroupResourceClaim(Model):
    """A claim by name, or a template of which one claim is made for the group; exactly one is set."""

    name: str = text()
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodGroupTemplate(Model):
    name: str = text()
    scheduling_policy: PodGroupSchedulingPolicy = nested(PodGroupSchedulingPolicy)
    scheduling_constraints: PodGroupSchedulingConstraints | None = nothing()
    resource_claims: tuple[PodGroupResourceClaim, ...] = ()
    disruption_mode: str | None = None
    priority_class_name: str = ""
    priority: int | None = None


class TypedLocalObjectReference(Model):
    api_group: str = ""
    kind: str = text()
    name: str = text()


class WorkloadSpec(Model):
    controller_ref: TypedLocalObjectReference | None = None
    pod_group_templates: tuple[PodGroupTemplate, ...] = ()


class Workload(Model):
    kind: str = constant("Workload")
    api_version: str = constant("scheduling.k8s.io/v1alpha2")
    metadata: ObjectMeta = nested(ObjectMeta)
    spec: WorkloadSpec = nested(WorkloadSpec)


class WorkloadPodGroupTemplateReference(Model):
    workload_name: str = text()
    pod_group_template_name: str = text()


class PodGroupTemplateReference(Model):
    workload: WorkloadPodGroupTemplateReference | None = nothing()


class PodGroupSpec(Model):
    pod_group_template_ref: PodGroupTemplateReference | None = nothing()
    scheduling_policy: PodGroupSchedulingPolicy = nested(PodGroupSchedulingPolicy)
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    resource_claims: tuple[PodGroupResourceClaim, ...] = ()
    disruption_mode: str | None = None
    priority_class_name: str = ""
    priority: int | None = None


class PodGroupResourceClaimStatus(Model):
    """`resource_claim_name` not set: no claim was needed."""

    name: str = text()
    resource_claim_name: str | None = None


class PodGroupStatus(Model):
    conditions: tuple[Condition, ...] = ()
    resource_claim_statuses: tuple[PodGroupResourceClaimStatus, ...] = ()


class PodGroup(Model):
    kind: str = constant("PodGroup")
    api_version: str = constant("scheduling.k8s.io/v1alpha2")
    metadata: ObjectMeta = nested(ObjectMeta)
    spec: PodGroupSpec = nested(PodGroupSpec)
    status: PodGroupStatus = nested(PodGroupStatus)
