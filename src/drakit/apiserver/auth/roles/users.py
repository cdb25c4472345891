"""The roles that every cluster has for people: admin, edit, view, and what everybody may see.

In:  feature gates.
Out: cluster roles. None of them but `cluster-admin` lets anybody make a ResourcePoolStatusRequest: what a pool holds is
     not for every user to know.
"""

from __future__ import annotations

from collections.abc import Iterator

from drakit.apiserver.auth.roles.builders import ALL, READ, WRITE, Document, aggregated_role, at, cluster_role, on
from drakit.base.gates import FeatureGates

_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"
_HEALTH = "/livez /readyz /healthz"
_WORKLOADS = (
    "daemonsets daemonsets/status deployments deployments/scale deployments/status replicasets replicasets/scale "
    "replicasets/status"
)


def user_roles(gates: FeatureGates) -> Iterator[Document]:
    yield cluster_role("cluster-admin", [on("*", "*", "*"), at("*", "*")])
    yield aggregated_role("admin", f"{_AGGREGATE}admin")
    yield aggregated_role("edit", f"{_AGGREGATE}edit", {f"{_AGGREGATE}admin": "true"})
    yield aggregated_role("view", f"{_AGGREGATE}view", {f"{_AGGREGATE}edit": "true"})
    yield cluster_role("system:aggregate-to-admin", _admin(), {f"{_AGGREGATE}admin": "true"})
    yield cluster_role("system:aggregate-to-edit", _edit(gates), {f"{_AGGREGATE}edit": "true"})
    yield cluster_role("system:aggregate-to-view", _view(gates), {f"{_AGGREGATE}view": "true"})
    yield from _everybody()


def _admin() -> Iterator[Document]:
    yield on("create", "authorization.k8s.io", "localsubjectaccessreviews")
    yield on(ALL, "rbac.authorization.k8s.io", "roles rolebindings")


def _edit(gates: FeatureGates) -> Iterator[Document]:
    inside = "pods/attach pods/proxy pods/exec pods/portforward"
    yield on(READ, "core", f"{inside} secrets services/proxy")
    yield on("impersonate", "core", "serviceaccounts")
    yield on(WRITE, "core", f"pods {inside}")
    yield on("create", "core", "pods/eviction")
    yield on(
        WRITE,
        "core",
        "replicationcontrollers replicationcontrollers/scale serviceaccounts services services/proxy "
        "persistentvolumeclaims configmaps secrets",
    )
    yield on("create", "core", "serviceaccounts/token")
    yield on(WRITE, "core events.k8s.io", "events")
    scaled = "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale"
    yield on(WRITE, "apps", f"{scaled} statefulsets statefulsets/scale")
    yield on(WRITE, "autoscaling", "horizontalpodautoscalers")
    yield on(WRITE, "batch", "cronjobs jobs")
    yield on(WRITE, "extensions", f"{scaled} ingresses networkpolicies replicationcontrollers/scale")
    yield on(WRITE, "policy", "poddisruptionbudgets")
    yield on(WRITE, "networking.k8s.io", "ingresses networkpolicies")
    yield on(ALL, "coordination.k8s.io", "leases")
    yield on(WRITE, "resource.k8s.io", "resourceclaims resourceclaimtemplates")
    if gates.enabled("GenericWorkload"):
        yield on(WRITE, "scheduling.k8s.io", "workloads podgroups")


def _view(gates: FeatureGates) -> Iterator[Document]:
    yield on(
        READ,
        "core",
        "pods replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status endpoints "
        "persistentvolumeclaims persistentvolumeclaims/status configmaps",
    )
    yield on(
        READ,
        "core",
        "limitranges resourcequotas bindings pods/status resourcequotas/status namespaces/status "
        "replicationcontrollers/status pods/log",
    )
    yield on(READ, "core", "namespaces")
    yield on(READ, "core events.k8s.io", "events")
    yield on(READ, "discovery.k8s.io", "endpointslices")
    yield on(READ, "apps", f"{_WORKLOADS} controllerrevisions statefulsets statefulsets/status statefulsets/scale")
    yield on(READ, "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status")
    yield on(READ, "batch", "jobs cronjobs cronjobs/status jobs/status")
    yield on(
        READ, "extensions", f"{_WORKLOADS} ingresses ingresses/status networkpolicies replicationcontrollers/scale"
    )
    yield on(READ, "policy", "poddisruptionbudgets poddisruptionbudgets/status")
    yield on(READ, "networking.k8s.io", "networkpolicies ingresses ingresses/status")
    yield on(READ, "resource.k8s.io", "resourceclaims resourceclaims/status resourceclaimtemplates")
    if gates.enabled("GenericWorkload"):
        yield on(READ, "scheduling.k8s.io", "workloads podgroups podgroups/status")


def _everybody() -> Iterator[Document]:
    """Roles for everybody: discovery, health, and questions about oneself."""
    version = "/version /version/"
    pages = "/openapi /openapi/* /api /api/* /apis /apis/*"
    yield cluster_role("system:discovery", [at("get", f"{_HEALTH} {version} {pages}")])
    yield cluster_role("system:public-info-viewer", [at("get", f"{_HEALTH} {version}")])
    metrics = "/metrics /metrics/slis /livez/* /readyz/* /healthz/* /flagz /statusz"
    yield cluster_role("system:monitoring", [at("get", f"{_HEALTH} {metrics}"), on("get", "core", "nodes/metrics")])
    yield cluster_role(
        "system:basic-user",
        [
            on("create", "authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews"),
            on("create", "authentication.k8s.io", "selfsubjectreviews"),
        ],
    )
    keys = "/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/"
    yield cluster_role("system:service-account-issuer-discovery", [at("get", keys)])
    yield cluster_role(
        "system:auth-delegator",
        [
            on("create", "authentication.k8s.io", "tokenreviews"),
            on("create", "authorization.k8s.io", "subjectaccessreviews"),
        ],
    )
