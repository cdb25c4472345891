"""Writes to an object that come as objects of another kind.

In:  a client, and the object's name or the object.
Out: a pod bound or on its way out, a log, a scale, a token.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from drakit.api.objects.partial import Partial
from drakit.api.objects.pods import Pod
from drakit.api.podstreams import PodLogOptions
from drakit.client.client import Client
from drakit.client.resources import PODS, SERVICE_ACCOUNTS, Resource

_WHOLE_LOG = PodLogOptions()


class IssuedToken(msgspec.Struct, frozen=True):
    token: str
    expires: str


async def bind(client: Client, pod: Partial[Pod], node: str, *, versioned: bool = False) -> None:
    """Give that pod its node. Raise Conflict when it has one, is being deleted, or is another of the same name."""
    metadata = pod.view.metadata
    about = {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid}
    if versioned:
        about["resourceVersion"] = metadata.resource_version
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": about, "target": target}
    await client.call("POST", PODS, metadata.name, "binding", binding, namespace=metadata.namespace)


async def evict(client: Client, pod: Partial[Pod], *, grace: int | None = None) -> None:
    """Delete that pod if nothing speaks against it. Raise TooManyRequests when a disruption budget does."""
    metadata = pod.view.metadata
    options: dict[str, Any] = {"preconditions": {"uid": metadata.uid}}
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    about = {"name": metadata.name, "namespace": metadata.namespace}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": about, "deleteOptions": options}
    await client.call("POST", PODS, metadata.name, "eviction", eviction, namespace=metadata.namespace)


@asynccontextmanager
async def read_log(
    client: Client, name: str, *, namespace: str, options: PodLogOptions = _WHOLE_LOG
) -> AsyncIterator[AsyncIterator[bytes]]:
    """The log of a pod's container, in pieces as they come; with `follow`, as long as the container runs.

    Raise NotFound, Rejected (there is no log yet, or several containers), ConnectionFailed when it breaks off.
    """
    container = [("container", options.container)] if options.container else []
    body = await client.open(PODS, name, "log", namespace=namespace, query=(*container, *options.query()))
    try:
        yield body.pieces()
    finally:
        await body.close()


async def get_scale(client: Client, resource: Resource[Any], name: str, *, namespace: str) -> dict[str, Any]:
    """The Scale of a workload, as a document."""
    return await client.call("GET", resource, name, "scale", namespace=namespace)


async def set_scale(
    client: Client, resource: Resource[Any], name: str, replicas: int, *, namespace: str, resource_version: str = ""
) -> dict[str, Any]:
    """Ask for so many replicas; with a version, only if nobody else has asked since."""
    about = {"name": name, "namespace": namespace}
    if resource_version:
        about["resourceVersion"] = resource_version
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": about, "spec": {"replicas": replicas}}
    return await client.call("PUT", resource, name, "scale", scale, namespace=namespace)


async def request_token(
    client: Client, name: str, *, namespace: str, audiences: Sequence[str] = (), seconds: int = 3600
) -> IssuedToken:
    """A token for a service account."""
    spec = {"audiences": list(audiences), "expirationSeconds": seconds}
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    answer = await client.call("POST", SERVICE_ACCOUNTS, name, "token", request, namespace=namespace)
    return IssuedToken(answer["status"]["token"], answer["status"]["expirationTimestamp"])
