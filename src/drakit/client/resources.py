"""The served kinds as typed names: `client.get(PODS, …)` gives a `Partial[Pod]`, `client.get(CLAIMS, …)` a struct.

In:  kinds of the registry.
Out: one Resource per kind, which says what its objects are to a type checker and where they are to the client.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Generic, TypeVar

from drakit.api.codec.documents import kind_and_version
from drakit.api.objects import apps, batch, certificates, cluster, policy, rbac
from drakit.api.objects.claims import ResourceClaim, ResourceClaimTemplate
from drakit.api.objects.classes import DeviceClass
from drakit.api.objects.partial import AnyObject, Partial
from drakit.api.objects.pods import Pod
from drakit.api.objects.poolstatus import ResourcePoolStatusRequest
from drakit.api.objects.slices import ResourceSlice
from drakit.api.objects.taintrules import DeviceTaintRule
from drakit.api.objects.workloads import PodGroup, Workload
from drakit.api.registry import Kind, find_kind, kind_of, lookup
from drakit.base.structs import Model

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Resource(Generic[T_co]):
    """A kind whose objects are `T`. Invariant: there is one Resource per kind, so identity is equality."""

    __slots__ = ("kind", "name")

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.name = kind.qualified

    def __repr__(self) -> str:
        return f"Resource({self.name})"

    def path(self, version: str, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Where objects of this kind are served."""
        kind = self.kind
        root = f"/apis/{kind.group}/{version}" if kind.group else f"/api/{version}"
        place = (
            f"{root}/namespaces/{namespace}/{kind.plural}" if namespace and kind.namespaced else f"{root}/{kind.plural}"
        )
        if not name:
            return place
        return f"{place}/{name}/{subresource}" if subresource else f"{place}/{name}"


@cache
def _resource(group: str, kind: str) -> Resource[Any]:
    found = lookup(f"{kind}.{group}" if group else kind)
    return Resource(found)


def resource_of(kind: Kind) -> Resource[Any]:
    """The resource of a registered kind."""
    return _resource(kind.group, kind.kind)


def resource(name: str) -> Resource[Any]:
    """The resource of any name that kubectl knows it by; raise Unsupported, with names that come close."""
    return resource_of(lookup(name))


def resource_of_model(model: Model | type[Model]) -> Resource[Any]:
    return resource_of(kind_of(model))


def resource_of_document(document: Mapping[str, Any]) -> tuple[Resource[Any], str]:
    """The resource that a document belongs to, and the version that it is written in."""
    kind, version = kind_and_version(document)
    return resource_of(kind), version


def resource_named(group_version: str, kind: str) -> Resource[Any] | None:
    """The resource of an owner reference or an involved object, if it is one that is known."""
    found = find_kind(group_version, kind)
    return resource_of(found) if found is not None else None


CLASSES: Resource[DeviceClass] = resource_of_model(DeviceClass)
CLAIMS: Resource[ResourceClaim] = resource_of_model(ResourceClaim)
TEMPLATES: Resource[ResourceClaimTemplate] = resource_of_model(ResourceClaimTemplate)
SLICES: Resource[ResourceSlice] = resource_of_model(ResourceSlice)
TAINT_RULES: Resource[DeviceTaintRule] = resource_of_model(DeviceTaintRule)
POOL_STATUS_REQUESTS: Resource[ResourcePoolStatusRequest] = resource_of_model(ResourcePoolStatusRequest)
POD_GROUPS: Resource[PodGroup] = resource_of_model(PodGroup)
WORKLOADS: Resource[Workload] = resource_of_model(Workload)
PODS: Resource[Partial[Pod]] = resource_of_model(Pod)
NODES: Resource[Partial[cluster.Node]] = resource_of_model(cluster.Node)
NAMESPACES: Resource[Partial[cluster.Namespace]] = resource_of_model(cluster.Namespace)
EVENTS: Resource[Partial[cluster.Event]] = resource_of_model(cluster.Event)
CONFIG_MAPS: Resource[Partial[cluster.ConfigMap]] = resource_of_model(cluster.ConfigMap)
SECRETS: Resource[Partial[cluster.Secret]] = resource_of_model(cluster.Secret)
SERVICE_ACCOUNTS: Resource[Partial[cluster.ServiceAccount]] = resource_of_model(cluster.ServiceAccount)
QUOTAS: Resource[Partial[cluster.ResourceQuota]] = resource_of_model(cluster.ResourceQuota)
LEASES: Resource[Partial[cluster.Lease]] = resource_of_model(cluster.Lease)
REPLICA_SETS: Resource[Partial[cluster.ReplicaSet]] = resource_of_model(cluster.ReplicaSet)
DEPLOYMENTS: Resource[Partial[apps.Deployment]] = resource_of_model(apps.Deployment)
DAEMON_SETS: Resource[Partial[apps.DaemonSet]] = resource_of_model(apps.DaemonSet)
CONTROLLER_REVISIONS: Resource[Partial[apps.ControllerRevision]] = resource_of_model(apps.ControllerRevision)
JOBS: Resource[Partial[batch.Job]] = resource_of_model(batch.Job)
CRON_JOBS: Resource[Partial[batch.CronJob]] = resource_of_model(batch.CronJob)
BUDGETS: Resource[Partial[policy.PodDisruptionBudget]] = resource_of_model(policy.PodDisruptionBudget)
SIGNING_REQUESTS: Resource[Partial[certificates.CertificateSigningRequest]] = resource_of_model(
    certificates.CertificateSigningRequest
)
SERVICES: Resource[Partial[AnyObject]] = resource("services")
PRIORITY_CLASSES: Resource[Partial[AnyObject]] = resource("priorityclasses.scheduling.k8s.io")
ROLES: Resource[Partial[rbac.Role]] = resource_of_model(rbac.Role)
ROLE_BINDINGS: Resource[Partial[rbac.RoleBinding]] = resource_of_model(rbac.RoleBinding)
CLUSTER_ROLES: Resource[Partial[rbac.ClusterRole]] = resource_of_model(rbac.ClusterRole)
CLUSTER_ROLE_BINDINGS: Resource[Partial[rbac.ClusterRoleBinding]] = resource_of_model(rbac.ClusterRoleBinding)
