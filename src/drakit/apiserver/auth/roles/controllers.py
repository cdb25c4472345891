"""The role of each controller, by its name.

In:  feature gates.
Out: rules by the name of the controller, which is also the name of its service account in `kube-system`.
"""

from __future__ import annotations

from collections.abc import Iterator

from drakit.apiserver.auth.roles.builders import EVENTS, READ, UPDATE, Document, on
from drakit.apiserver.auth.roles.neighbours import CONTROLLERS
from drakit.apiserver.auth.roles.workloads import workload_rules
from drakit.base.gates import FeatureGates

_DRA = "resource.k8s.io"
_POD_OWNER = "create delete list patch watch"


def controller_rules(gates: FeatureGates) -> dict[str, list[Document]]:
    neighbours = {name: list(rules) for name, rules in CONTROLLERS.items()}
    rules = {**neighbours, **_general(), **workload_rules(), "resource-claim-controller": list(_claims(gates))}
    if gates.enabled("DRADeviceTaints"):
        rules["device-taint-eviction-controller"] = list(_evicting(gates))
    if gates.enabled("DRAResourcePoolStatus"):
        rules["resourcepoolstatusrequest-controller"] = list(_pool_status())
    if gates.enabled("GenericWorkload"):
        rules["podgroup-protection-controller"] = [
            on(f"{READ} update", "scheduling.k8s.io", "podgroups"),
            on(READ, "core", "pods"),
        ]
    return rules


def _general() -> dict[str, list[Document]]:
    return {
        "clusterrole-aggregation-controller": [
            on(f"escalate {READ} {UPDATE}", "rbac.authorization.k8s.io", "clusterroles")
        ],
        "daemon-set-controller": [
            on(READ, "apps extensions", "daemonsets"),
            on("update", "apps extensions", "daemonsets/status"),
            on("update", "apps extensions", "daemonsets/finalizers"),
            on("list watch", "core", "nodes"),
            on(_POD_OWNER, "core", "pods"),
            on("create", "core", "pods/binding"),
            on(f"{READ} create delete {UPDATE}", "apps", "controllerrevisions"),
            EVENTS,
        ],
        "deployment-controller": [
            on(f"{READ} update", "apps extensions", "deployments"),
            on("update", "apps extensions", "deployments/status"),
            on("update", "apps extensions", "deployments/finalizers"),
            on(f"{READ} create delete {UPDATE}", "apps extensions", "replicasets"),
            on(f"{READ} update", "core", "pods"),
            EVENTS,
        ],
        "generic-garbage-collector": [on(f"{READ} {UPDATE} delete", "*", "*"), EVENTS],
        "namespace-controller": [
            on(f"{READ} delete", "core", "namespaces"),
            on("update", "core", "namespaces/finalize namespaces/status"),
            on(f"{READ} delete deletecollection", "*", "*"),
        ],
        "node-controller": [
            on(f"{READ} {UPDATE} delete", "core", "nodes"),
            on(UPDATE, "core", "nodes/status"),
            on(UPDATE, "core", "pods/status"),
            on(f"{READ} delete", "core", "pods"),
            EVENTS,
        ],
        "pod-garbage-collector": [
            on("delete list watch", "core", "pods"),
            on(READ, "core", "nodes"),
            on("patch", "core", "pods/status"),
        ],
        "replicaset-controller": [
            on(f"{READ} update", "apps extensions", "replicasets"),
            on("update", "apps extensions", "replicasets/status"),
            on("update", "apps extensions", "replicasets/finalizers"),
            on(_POD_OWNER, "core", "pods"),
            EVENTS,
        ],
        "resourcequota-controller": [
            on("list watch", "*", "*"),
            on("update", "core", "resourcequotas/status"),
            EVENTS,
        ],
        "root-ca-cert-publisher": [on("create update", "core", "configmaps"), EVENTS],
        "service-account-controller": [on("create", "core", "serviceaccounts"), EVENTS],
        "validatingadmissionpolicy-status-controller": [
            on(READ, "admissionregistration.k8s.io", "validatingadmissionpolicies"),
            on("get patch update", "admissionregistration.k8s.io", "validatingadmissionpolicies/status"),
            EVENTS,
        ],
    }


def _claims(gates: FeatureGates) -> Iterator[Document]:
    yield on(READ, "core", "pods")
    yield on("update", "core", "pods/finalizers")
    yield on(f"{READ} create delete", _DRA, "resourceclaims")
    yield on(UPDATE, _DRA, "resourceclaims resourceclaims/status")
    yield on(UPDATE, "core", "pods/status")
    yield EVENTS
    if gates.enabled("DRAWorkloadResourceClaims"):
        yield on(READ, "scheduling.k8s.io", "podgroups")
        yield on(UPDATE, "scheduling.k8s.io", "podgroups/status")
    if gates.enabled("DRAResourceClaimGranularStatusAuthorization"):
        yield on(UPDATE, _DRA, "resourceclaims/binding")


def _evicting(gates: FeatureGates) -> Iterator[Document]:
    yield on(f"{READ} delete", "core", "pods")
    yield on(UPDATE, "core", "pods/status")
    yield on(READ, _DRA, "resourceclaims")
    yield on(READ, _DRA, "resourceslices")
    yield on(READ, _DRA, "deviceclasses")
    yield EVENTS
    if gates.enabled("DRADeviceTaintRules"):
        yield on(UPDATE, _DRA, "devicetaintrules/status")
        yield on(READ, _DRA, "devicetaintrules")


def _pool_status() -> Iterator[Document]:
    yield on(f"{READ} delete", _DRA, "resourcepoolstatusrequests")
    yield on(UPDATE, _DRA, "resourcepoolstatusrequests/status")
    yield on(READ, _DRA, "resourceslices")
    yield on(READ, _DRA, "resourceclaims")
    yield EVENTS
