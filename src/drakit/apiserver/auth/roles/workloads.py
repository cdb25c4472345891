"""The roles of the controllers of jobs, disruption budgets and certificates, by their names."""

from __future__ import annotations

from drakit.apiserver.auth.roles.builders import EVENTS, READ, UPDATE, Document, on

_CERTIFICATES = "certificates.k8s.io"
_SIGNERS = (
    "kubernetes.io/legacy-unknown kubernetes.io/kube-apiserver-client kubernetes.io/kube-apiserver-client-kubelet "
    "kubernetes.io/kubelet-serving"
)


def workload_rules() -> dict[str, list[Document]]:
    return {
        "job-controller": [
            on(f"{READ} {UPDATE}", "batch", "jobs"),
            on("update", "batch", "jobs/status"),
            on("update", "batch", "jobs/finalizers"),
            on("create delete list patch watch", "core", "pods"),
            EVENTS,
        ],
        "ttl-after-finished-controller": [on(f"{READ} delete", "batch", "jobs"), EVENTS],
        "cronjob-controller": [
            on(f"{READ} update", "batch", "cronjobs"),
            on(f"{READ} create delete {UPDATE}", "batch", "jobs"),
            on("update", "batch", "cronjobs/status"),
            on("update", "batch", "cronjobs/finalizers"),
            on("delete list watch", "core", "pods"),
            EVENTS,
        ],
        "disruption-controller": [
            on(READ, "apps extensions", "deployments"),
            on(READ, "apps extensions", "replicasets"),
            on(READ, "core", "replicationcontrollers"),
            on(READ, "policy", "poddisruptionbudgets"),
            on(READ, "apps", "statefulsets"),
            on("update", "policy", "poddisruptionbudgets/status"),
            on(UPDATE, "core", "pods/status"),
            on("get", "*", "*/scale"),
            EVENTS,
        ],
        "certificate-controller": [
            on(f"{READ} delete", _CERTIFICATES, "certificatesigningrequests"),
            on("update", _CERTIFICATES, "certificatesigningrequests/status certificatesigningrequests/approval"),
            on("approve", _CERTIFICATES, "signers", "kubernetes.io/kube-apiserver-client-kubelet"),
            on("sign", _CERTIFICATES, "signers", _SIGNERS),
            on("create", "authorization.k8s.io", "subjectaccessreviews"),
            EVENTS,
        ],
    }
