"""Create the objects that every cluster has: namespaces, the service `kubernetes` and where it leads.

In:  a server that has not answered requests yet; later, the address at which it is reached.
Out: those objects are in the store. What was there already stays as it is, but for the address.
"""

from __future__ import annotations

from contextlib import suppress
from ipaddress import ip_address
from typing import Any

from drakit.api.registry import Kind
from drakit.api.schemas.compiler import shape_of
from drakit.apiserver.auth.identities import SYSTEM
from drakit.apiserver.kinds.served import known_kind
from drakit.apiserver.storage.objectstore import Conflict, KeyExists
from drakit.apiserver.verbs.context import ServerContext
from drakit.base.errors import Retryable

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
    await _ensure(context, known_kind("v1", "ConfigMap"), SYSTEM, _token_tracking(context))


async def check_bootstrap(context: ServerContext) -> None:
    """Raise Retryable unless the namespaces are there that every cluster has."""
    kind = known_kind("v1", "Namespace")
    missing = [name for name in NAMESPACES if await context.objects.find(kind, "", name) is None]
    if missing:
        raise Retryable(f"namespaces are missing: {', '.join(missing)}")


async def announce(context: ServerContext, address: str, client_ca: str) -> None:
    """Point the service `kubernetes` to this host and port. A host that is no address cannot be pointed to."""
    if client_ca:
        await _ensure_parts(context, _authentication(client_ca), SYSTEM)
    host, _, port = address.rpartition(":")
    try:
        parsed = ip_address(host.strip("[]"))
    except ValueError:
        return
    for document in (_endpoints(str(parsed), int(port)), _endpoint_slice(str(parsed), int(port), parsed.version)):
        await _ensure_parts(context, document, "default")


async def _ensure_parts(context: ServerContext, document: dict[str, Any], namespace: str) -> None:
    """Create an object, or give it these parts if it has others. Its metadata stay."""
    kind = known_kind(document["apiVersion"], document["kind"])
    await _ensure(context, kind, namespace, document)
    found = await context.objects.get(kind, namespace, document["metadata"]["name"])
    parts = {name: part for name, part in document.items() if name != "metadata"}
    if any(found.document.get(name) != part for name, part in parts.items()):
        with suppress(Conflict):  # another server on the same store announces itself
            await context.objects.update(found, {**found.document, **parts})


def _authentication(client_ca: str) -> dict[str, Any]:
    """Where scheduler, controller manager and other servers read whose client certificates to trust."""
    return {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "extension-apiserver-authentication", "namespace": SYSTEM},
        "data": {"client-ca-file": client_ca},
    }


def _endpoints(host: str, port: int) -> dict[str, Any]:
    subset = {"addresses": [{"ip": host}], "ports": [{"name": "https", "port": port, "protocol": "TCP"}]}
    labels = {"endpointslice.kubernetes.io/skip-mirror": "true"}
    return {
        "kind": "Endpoints",
        "apiVersion": "v1",
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels},
        "subsets": [subset],
    }


def _endpoint_slice(host: str, port: int, version: int) -> dict[str, Any]:
    labels = {"kubernetes.io/service-name": "kubernetes"}
    return {
        "kind": "EndpointSlice",
        "apiVersion": "discovery.k8s.io/v1",
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels, "generation": 1},
        "addressType": f"IPv{version}",
        "endpoints": [{"addresses": [host], "conditions": {"ready": True}}],
        "ports": [{"name": "https", "protocol": "TCP", "port": port}],
    }


def _token_tracking(context: ServerContext) -> dict[str, Any]:
    """Since when the use of tokens in Secrets is tracked. A controller of Kubernetes reads it; there are none here."""
    name = "kube-apiserver-legacy-service-account-token-tracking"
    return {"metadata": {"name": name, "namespace": SYSTEM}, "data": {"since": context.timestamp()[:10]}}


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
