"""The roles of components: scheduler, nodes, controller manager, drivers. Each has only the rights that it needs.

In:  feature gates; the name of a driver.
Out: cluster roles.
"""

from __future__ import annotations

from collections.abc import Iterator

from drakit.apiserver.auth.roles.builders import (
    ALL,
    EVENTS,
    READ,
    UPDATE,
    Document,
    account,
    cluster_binding,
    cluster_role,
    on,
)
from drakit.base.gates import FeatureGates

_DRA = "resource.k8s.io"
_GRANULAR = "DRAResourceClaimGranularStatusAuthorization"


def component_roles(gates: FeatureGates) -> Iterator[Document]:
    yield cluster_role("system:kube-scheduler", _scheduler(gates))
    yield cluster_role("system:kube-controller-manager", _controller_manager())
    yield cluster_role("system:node", node_rules())
    yield cluster_role(
        "system:volume-scheduler",
        [
            on(f"{READ} {UPDATE}", "core", "persistentvolumes"),
            on(READ, "storage.k8s.io", "storageclasses"),
            on(f"{READ} {UPDATE}", "core", "persistentvolumeclaims"),
        ],
    )
    yield cluster_role(
        "system:node-problem-detector", [on("get", "core", "nodes"), on("patch", "core", "nodes/status"), EVENTS]
    )
    yield cluster_role(
        "system:kubelet-api-admin",
        [
            on(READ, "core", "nodes"),
            on("proxy", "core", "nodes"),
            on("*", "core", "nodes/log nodes/metrics nodes/proxy nodes/stats"),
            on("*", "core", "nodes/configz nodes/healthz nodes/pods"),
        ],
    )


def driver_role(driver: str) -> Document:
    """The rights of a driver: publish slices, read claims, report on its devices on its own node."""
    return cluster_role(
        f"system:drakit:driver:{driver}",
        [
            on("get", "core", "nodes"),
            on(ALL, _DRA, "resourceslices"),
            on("get", _DRA, "resourceclaims"),
            on(UPDATE, _DRA, "resourceclaims/status"),
            on("associated-node:patch associated-node:update", _DRA, "resourceclaims/driver", driver),
            EVENTS,
        ],
    )


def driver_binding(driver: str, namespace: str, name: str) -> Document:
    """Bind the role of a driver to its service account."""
    return cluster_binding(driver_role(driver)["metadata"]["name"], [account(namespace, name)])


def _scheduler(gates: FeatureGates) -> Iterator[Document]:
    yield EVENTS
    yield on("create", "coordination.k8s.io", "leases")
    yield on("get list update watch", "coordination.k8s.io", "leases", "kube-scheduler")
    yield on(ALL, "coordination.k8s.io", "leasecandidates")
    yield on(READ, "core", "nodes")
    yield on(f"{READ} delete", "core", "pods")
    yield on("create", "core", "bindings pods/binding")
    yield on(UPDATE, "core", "pods/status")
    yield on(READ, "core", "services replicationcontrollers")
    yield on(READ, "apps extensions", "replicasets")
    yield on(READ, "apps", "statefulsets")
    yield on(READ, "policy", "poddisruptionbudgets")
    yield on(READ, "core", "persistentvolumeclaims persistentvolumes")
    yield on("create", "authentication.k8s.io", "tokenreviews")
    yield on("create", "authorization.k8s.io", "subjectaccessreviews")
    yield on(READ, "storage.k8s.io", "csinodes")
    yield on(READ, "storage.k8s.io", "volumeattachments")
    yield on(READ, "core", "namespaces")
    yield on(READ, "storage.k8s.io", "csidrivers")
    yield on(READ, "storage.k8s.io", "csistoragecapacities")
    yield from _allocating(gates)
    if gates.enabled("GenericWorkload"):
        yield on(READ, "scheduling.k8s.io", "podgroups")
        yield on(UPDATE, "scheduling.k8s.io", "podgroups/status")


def _allocating(gates: FeatureGates) -> Iterator[Document]:
    yield on(READ, _DRA, "deviceclasses")
    yield on(f"{READ} {UPDATE}", _DRA, "resourceclaims")
    yield on(f"{READ} {UPDATE}", _DRA, "resourceclaims/status")
    yield on("update", "core", "pods/finalizers")
    yield on(READ, _DRA, "resourceslices")
    if gates.enabled("DRAExtendedResource"):
        yield on("create delete", _DRA, "resourceclaims")
    if gates.enabled("DRADeviceTaintRules"):
        yield on(READ, _DRA, "devicetaintrules")
    if gates.enabled(_GRANULAR):
        yield on(UPDATE, _DRA, "resourceclaims/binding")


def _controller_manager() -> Iterator[Document]:
    yield EVENTS
    yield on("create", "coordination.k8s.io", "leases")
    yield on("get update", "coordination.k8s.io", "leases", "kube-controller-manager")
    yield on("create", "core", "secrets serviceaccounts")
    yield on("delete", "core", "secrets")
    yield on("get", "core", "namespaces secrets serviceaccounts configmaps")
    yield on("update", "core", "secrets serviceaccounts")
    yield on("create", "authentication.k8s.io", "tokenreviews")
    yield on("create", "authorization.k8s.io", "subjectaccessreviews")
    yield on("list watch", "*", "*")
    yield on("create", "core", "serviceaccounts/token")


def node_rules() -> Iterator[Document]:
    """The rules of `system:node`. The node authorizer limits each node to its own objects."""
    own = "create delete get patch update"
    yield on("create", "authentication.k8s.io", "tokenreviews")
    yield on("create", "authorization.k8s.io", "subjectaccessreviews localsubjectaccessreviews")
    yield on(READ, "core", "services")
    yield on(f"{READ} create", "core", "nodes")
    yield on(UPDATE, "core", "nodes/status")
    yield on(UPDATE, "core", "nodes")
    yield EVENTS
    yield on(READ, "core", "pods")
    yield on("create delete", "core", "pods")
    yield on(UPDATE, "core", "pods/status")
    yield on("create", "core", "pods/eviction")
    yield on(READ, "core", "secrets configmaps")
    yield on("get", "core", "persistentvolumeclaims persistentvolumes")
    yield on("get", "core", "endpoints")
    yield on(f"{READ} create", "certificates.k8s.io", "certificatesigningrequests")
    yield on(own, "coordination.k8s.io", "leases")
    yield on("get", "storage.k8s.io", "volumeattachments")
    yield on("create", "core", "serviceaccounts/token")
    yield on("get patch update", "core", "persistentvolumeclaims/status")
    yield on(READ, "storage.k8s.io", "csidrivers")
    yield on(own, "storage.k8s.io", "csinodes")
    yield on(READ, "node.k8s.io", "runtimeclasses")
    yield on("get", _DRA, "resourceclaims")
    yield on("deletecollection", _DRA, "resourceslices")
    yield on("get", "core", "serviceaccounts")
