"""Views of the kinds around a pod: nodes, namespaces, quotas, events, leases, replica sets and plain data."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from drakit.api.objects.meta import ObjectMeta
from drakit.api.objects.pods import PodTemplateSpec
from drakit.api.objects.wire import constant, mapping, nested, text
from drakit.base.labels import LabelSelector
from drakit.base.quantity import Quantity
from drakit.base.structs import Model
from drakit.base.taints import Taint


class NodeSpec(Model):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    provider_id: str = msgspec.field(default="", name="providerID")


class NodeCondition(Model):
    type: str = text()
    status: str = text()
    last_heartbeat_time: str | None = None
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class NodeStatus(Model):
    capacity: Mapping[str, Quantity] = mapping()
    allocatable: Mapping[str, Quantity] = mapping()
    conditions: tuple[NodeCondition, ...] = ()


class Node(Model):
    kind: str = constant("Node")
    api_version: str = constant("v1")
    metadata: ObjectMeta = nested(ObjectMeta)
    spec: NodeSpec = nested(NodeSpec)
    status: NodeStatus = nested(NodeStatus)


class NamespaceSpec(Model):
    finalizers: tuple[str, ...] = ()


class NamespaceStatus(Model):
    phase: str = ""


class Namespace(Model):
    kind: str = constant("Namespace")
    api_version: str = constant("v1")
    metadata: ObjectMeta = nested(ObjectMeta)
    spec: NamespaceSpec = nested(NamespaceSpec)
    status: NamespaceStatus = nested(NamespaceStatus)


class ObjectReference(Model):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""
    field_path: str = ""


class EventSource(Model):
    component: str = ""
    host: str = ""


class EventSeries(Model):
    count: int = 0
    last_observed_time: str | None = None


class Event(Model):
    kind: str = constant("Event")
    api_version: str = constant("v1")
    metadata: ObjectMeta = nested(ObjectMeta)
    involved_object: ObjectReference = nested(ObjectReference)
    reason: str = ""
    message: str = ""
    source: EventSource = nested(EventSource)
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    count: int = 0
    type: str = ""
    event_time: str | None = None
    series: EventSeries | None = None
    action: str = ""
    related: ObjectReference | None = None
    reporting_component: str = text()
    reporting_instance: str = text()


class LeaseSpec(Model):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(Model):
    kind: str = constant("Lease")
    api_version: str = constant("coordination.k8s.io/v1")
    metadata: ObjectMeta = nested(ObjectMeta)
    spec: LeaseSpec = nested(LeaseSpec)


class ScopedResourceSelectorRequirement(Model):
    scope_name: str = text()
    operator: str = text()
    values: tuple[str, ...] = ()


class ScopeSelector(Model):
    match_expressions: tuple[ScopedResourceSelectorRequirement, ...] = ()


class ResourceQuotaSpec(Model):
    hard: Mapping[str, Quantity] = mapping()
    scopes: tuple[str, ...] = ()
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(Model):
    hard: Mapping[str, Quantity] = mapping()
    used: Mapping[str, Quantity] = mapping()


class ResourceQuota(Model):
    kind: str = constant("ResourceQuota")
    api_version: str = constant("v1")
    metadata: ObjectMeta = nested(ObjectMeta)
    spec: ResourceQuotaSpec = nested(ResourceQuotaSpec)
    status: ResourceQuotaStatus = nested(ResourceQuotaStatus)


class ServiceAccount(Model):
    kind: str = constant("ServiceAccount")
    api_version: str = constant("v1")
    metadata: ObjectMeta = nested(ObjectMeta)
    automount_service_account_token: bool | None = None


class ConfigMap(Model):
    kind: str = constant("ConfigMap")
    api_version: str = constant("v1")
    metadata: ObjectMeta = nested(ObjectMeta)
    immutable: bool | None = None
    data: Mapping[str, str] = mapping()
    binary_data: Mapping[str, str] = mapping()


class Secret(Model):
    """`data` stays base64, as on the wire."""

    kind: str = constant("Secret")
    api_version: str = constant("v1")
    metadata: ObjectMeta = nested(ObjectMeta)
    immutable: bool | None = None
    data: Mapping[str, str] = mapping()
    string_data: Mapping[str, str] = mapping()
    type: str = ""


class ReplicaSetSpec(Model):
    replicas: int | None = None
    min_ready_seconds: int = 0
    selector: LabelSelector | None = None
    template: PodTemplateSpec = nested(PodTemplateSpec)


class ReplicaSetStatus(Model):
    replicas: int = 0
    fully_labeled_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    observed_generation: int = 0


class ReplicaSet(Model):
    kind: str = constant("ReplicaSet")
    api_version: str = constant("apps/v1")
    metadata: ObjectMeta = nested(ObjectMeta)
    spec: ReplicaSetSpec = nested(ReplicaSetSpec)
    status: ReplicaSetStatus = nested(ReplicaSetStatus)
