"""The roles of controllers and components of Kubernetes that drakit has no part of its own for.

With them the parts of Kubernetes run on drakit under the names and with the rights that they are used to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from drakit.apiserver.auth.identities import CONTROLLER_MANAGER, SCHEDULER, SYSTEM
from drakit.apiserver.auth.roles.builders import (
    EVENTS,
    Document,
    account,
    binding,
    cluster_binding,
    cluster_role,
    on,
    role,
    user,
)

CONTROLLERS: Mapping[str, Sequence[Document]] = {
    "attachdetach-controller": [
        on("list watch", "core", "persistentvolumeclaims persistentvolumes"),
        on("get list watch", "core", "nodes"),
        on("patch update", "core", "nodes/status"),
        on("list watch", "core", "pods"),
        EVENTS,
        on("create delete get list watch", "storage.k8s.io", "volumeattachments"),
        on("get list watch", "storage.k8s.io", "csidrivers"),
        on("get list watch", "storage.k8s.io", "csinodes"),
    ],
    "endpoint-controller": [
        on("get list watch", "core", "pods services"),
        on("create delete get list update watch", "core", "endpoints"),
        on("create", "core", "endpoints/restricted"),
        EVENTS,
    ],
    "endpointslice-controller": [
        on("get list watch", "core", "nodes pods services"),
        on("update", "core", "services/finalizers"),
        on("create delete get list update watch", "discovery.k8s.io", "endpointslices"),
        EVENTS,
    ],
    "endpointslicemirroring-controller": [
        on("get list watch", "core", "endpoints services"),
        on("update", "core", "services/finalizers"),
        on("update", "core", "endpoints/finalizers"),
        on("create delete get list update watch", "discovery.k8s.io", "endpointslices"),
        EVENTS,
    ],
    "ephemeral-volume-controller": [
        on("get list watch", "core", "pods"),
        on("update", "core", "pods/finalizers"),
        on("create get list watch", "core", "persistentvolumeclaims"),
        EVENTS,
    ],
    "expand-controller": [
        on("get list patch update watch", "core", "persistentvolumes"),
        on("patch update", "core", "persistentvolumeclaims/status"),
        on("get list watch", "core", "persistentvolumeclaims"),
        EVENTS,
    ],
    "horizontal-pod-autoscaler": [
        on("get list watch", "autoscaling", "horizontalpodautoscalers"),
        on("update", "autoscaling", "horizontalpodautoscalers/status"),
        on("get update", "*", "*/scale"),
        on("list watch", "core", "pods"),
        on("list watch", "metrics.k8s.io", "pods"),
        on("get list watch", "custom.metrics.k8s.io", "*"),
        on("get list watch", "external.metrics.k8s.io", "*"),
        EVENTS,
    ],
    "legacy-service-account-token-cleaner": [
        on("get", "core", "configmaps", "kube-apiserver-legacy-service-account-token-tracking"),
        on("delete patch", "core", "secrets"),
    ],
    "persistent-volume-binder": [
        on("create delete get list update watch", "core", "persistentvolumes"),
        on("update", "core", "persistentvolumes/status"),
        on("get list update watch", "core", "persistentvolumeclaims"),
        on("update", "core", "persistentvolumeclaims/status"),
        on("create delete get list watch", "core", "pods"),
        on("get list watch", "storage.k8s.io", "storageclasses"),
        on("list watch", "core", "nodes"),
        EVENTS,
        on("watch", "core", "events"),
    ],
    "pv-protection-controller": [
        on("get list update watch", "core", "persistentvolumes"),
        EVENTS,
    ],
    "pvc-protection-controller": [
        on("get list update watch", "core", "persistentvolumeclaims"),
        on("update", "core", "persistentvolumeclaims/status"),
        on("get list watch", "core", "pods"),
        EVENTS,
    ],
    "replication-controller": [
        on("get list update watch", "core", "replicationcontrollers"),
        on("update", "core", "replicationcontrollers/status"),
        on("update", "core", "replicationcontrollers/finalizers"),
        on("create delete list patch watch", "core", "pods"),
        EVENTS,
    ],
    "route-controller": [
        on("list watch", "core", "nodes"),
        on("patch", "core", "nodes/status"),
        EVENTS,
    ],
    "selinux-warning-controller": [
        EVENTS,
        on("get list watch", "core", "persistentvolumes"),
        on("get list watch", "core", "persistentvolumeclaims"),
        on("get list watch", "core", "pods"),
        on("get list watch", "storage.k8s.io", "csidrivers"),
    ],
    "service-cidrs-controller": [
        on("get list patch update watch", "networking.k8s.io", "servicecidrs"),
        on("patch update", "networking.k8s.io", "servicecidrs/finalizers"),
        on("patch update", "networking.k8s.io", "servicecidrs/status"),
        on("get list watch", "networking.k8s.io", "ipaddresses"),
        EVENTS,
    ],
    "service-controller": [
        on("get list watch", "core", "services"),
        on("patch update", "core", "services/status"),
        on("list watch", "core", "nodes"),
        EVENTS,
    ],
    "statefulset-controller": [
        on("list watch", "core", "pods"),
        on("get list watch", "apps", "statefulsets"),
        on("update", "apps", "statefulsets/status"),
        on("update", "apps", "statefulsets/finalizers"),
        on("create delete get patch update", "core", "pods"),
        on("create delete get list patch update watch", "apps", "controllerrevisions"),
        on("create get list watch", "core", "persistentvolumeclaims"),
        on("delete update", "core", "persistentvolumeclaims"),
        on("update", "core", "pods/finalizers"),
        EVENTS,
    ],
    "ttl-controller": [
        on("list patch update watch", "core", "nodes"),
        EVENTS,
    ],
    "volumeattributesclass-protection-controller": [
        on("get list watch", "core", "persistentvolumeclaims"),
        on("get list watch", "core", "persistentvolumes"),
        on("get list update watch", "storage.k8s.io", "volumeattributesclasses"),
        EVENTS,
    ],
}
"""Rules by the name of the controller, which is also the name of its service account."""

COMPONENTS: Mapping[str, Sequence[Document]] = {
    "system:certificates.k8s.io:certificatesigningrequests:nodeclient": [
        on("create", "certificates.k8s.io", "certificatesigningrequests/nodeclient"),
    ],
    "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient": [
        on("create", "certificates.k8s.io", "certificatesigningrequests/selfnodeclient"),
    ],
    "system:certificates.k8s.io:kube-apiserver-client-approver": [
        on("approve", "certificates.k8s.io", "signers", "kubernetes.io/kube-apiserver-client"),
    ],
    "system:certificates.k8s.io:kube-apiserver-client-kubelet-approver": [
        on("approve", "certificates.k8s.io", "signers", "kubernetes.io/kube-apiserver-client-kubelet"),
    ],
    "system:certificates.k8s.io:kubelet-serving-approver": [
        on("approve", "certificates.k8s.io", "signers", "kubernetes.io/kubelet-serving"),
    ],
    "system:certificates.k8s.io:legacy-unknown-approver": [
        on("approve", "certificates.k8s.io", "signers", "kubernetes.io/legacy-unknown"),
    ],
    "system:heapster": [
        on("get list watch", "core", "events namespaces nodes pods"),
        on("get list watch", "extensions", "deployments"),
    ],
    "system:kube-aggregator": [
        on("get list watch", "core", "endpoints services"),
    ],
    "system:kube-dns": [
        on("list watch", "core", "endpoints services"),
    ],
    "system:node-bootstrapper": [
        on("create get list watch", "certificates.k8s.io", "certificatesigningrequests"),
    ],
    "system:node-proxier": [
        on("list watch", "core", "endpoints services"),
        on("get list watch", "core", "nodes"),
        EVENTS,
        on("list watch", "networking.k8s.io", "servicecidrs"),
        on("list watch", "discovery.k8s.io", "endpointslices"),
    ],
    "system:persistent-volume-provisioner": [
        on("create delete get list watch", "core", "persistentvolumes"),
        on("get list update watch", "core", "persistentvolumeclaims"),
        on("get list watch", "storage.k8s.io", "storageclasses"),
        on("watch", "core", "events"),
        EVENTS,
    ],
}
"""Rules by the name of the role."""

_PUBLIC = "kube-public"
_SIGNER, _CLEANER, _CLOUD = (
    f"system:controller:{name}" for name in ("bootstrap-signer", "token-cleaner", "cloud-provider")
)
_READER = "extension-apiserver-authentication-reader"


def neighbour_objects() -> Iterator[Document]:
    """Roles and bindings beside those of controllers, roles first."""
    for name, rules in COMPONENTS.items():
        yield cluster_role(name, rules)
    yield cluster_binding("system:kube-dns", [account(SYSTEM, "kube-dns")])
    yield cluster_binding("system:node-proxier", [user("system:kube-proxy")])
    yield role(
        _PUBLIC,
        _SIGNER,
        [on("get list watch", "core", "configmaps"), on("update", "core", "configmaps", "cluster-info"), EVENTS],
    )
    yield role(SYSTEM, _SIGNER, [on("get list watch", "core", "secrets")])
    yield role(SYSTEM, _CLEANER, [on("delete get list watch", "core", "secrets"), EVENTS])
    yield role(SYSTEM, _CLOUD, [on("create get list watch", "core", "configmaps")])
    yield role(SYSTEM, _READER, [on("get list watch", "core", "configmaps", "extension-apiserver-authentication")])
    for namespace in (_PUBLIC, SYSTEM):
        yield binding(namespace, _SIGNER, [account(SYSTEM, "bootstrap-signer")])
    yield binding(SYSTEM, _CLEANER, [account(SYSTEM, "token-cleaner")])
    yield binding(SYSTEM, _CLOUD, [account(SYSTEM, "cloud-provider")])
    readers = [user(CONTROLLER_MANAGER.name), user(SCHEDULER.name)]
    yield binding(SYSTEM, f"system::{_READER}", readers, of=_READER)
