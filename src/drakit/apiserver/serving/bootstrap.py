"""Create the objects that every cluster has: namespaces, and the service `kubernetes`.

In:  a server that has not answered requests yet.
Out: those objects are in the store. What was there already stays as it is.
"""

from __future__ import annotations

from typing import Any

from drakit.api.registry import Kind
from drakit.api.schemas.compiler import shape_of
from drakit.apiserver.kinds.served import known_kind
from drakit.apiserver.storage.objectstore import KeyExists
from drakit.apiserver.verbs.context import ServerContext

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


async def bootstrap(context: ServerContext) -> None:
    namespace, service = known_kind("v1", "Namespace"), known_kind("v1", "Service")
    for name in NAMESPACES:
        labels = {"kubernetes.io/metadata.name": name}
        document = {
            "metadata": {"name": name, "labels": labels},
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        }
        await _ensure(context, namespace, "", document)
    await _ensure(context, service, "default", _kubernetes_service())


def _kubernetes_service() -> dict[str, Any]:
    labels = {"component": "apiserver", "provider": "kubernetes"}
    return {
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels},
        "spec": {
            "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443}],
            "clusterIP": "10.96.0.1",
            "clusterIPs": ["10.96.0.1"],
            "type": "ClusterIP",
            "sessionAffinity": "None",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
        },
        "status": {"loadBalancer": {}},
    }


async def _ensure(context: ServerContext, kind: Kind, namespace: str, document: dict[str, Any]) -> None:
    if await context.objects.find(kind, namespace, document["metadata"]["name"]) is not None:
        return
    metadata = {
        **document["metadata"], "uid": context.new_uid(), "creationTimestamp": context.timestamp()
    }  # fmt: skip
    document = {**document, "kind": kind.kind, "apiVersion": kind.internal_version, "metadata": metadata}
    completed = shape_of(kind.internal_version, kind.kind).complete(document)
    try:
        await context.objects.create(kind, namespace, completed)
    except KeyExists:  # another server on the same store was quicker
        return
