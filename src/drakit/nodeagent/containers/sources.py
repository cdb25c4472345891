"""Where ConfigMaps, Secrets and service account tokens come from.

In:  names that a pod's environment and volumes use.
Out: their data as bytes; None for an object that is not there.
"""

from __future__ import annotations

import base64
import binascii
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from drakit.base.errors import Retryable
from drakit.client import CONFIG_MAPS, SECRETS, SERVICE_ACCOUNTS, Client, NotFound, Resource
from drakit.nodeagent.containers.failures import MountFailed
from drakit.nodeagent.runtimes.contract import PodIdentity

Data = Mapping[str, bytes]

_MOST_KEPT = 1024


@dataclass(frozen=True, slots=True)
class BoundToken:
    text: str
    expires: datetime


class ObjectSource(Protocol):
    """Raises the client's errors when the API server does not answer: all of them may be tried again."""

    async def config_map(self, namespace: str, name: str) -> Data | None: ...

    async def secret(self, namespace: str, name: str) -> Data | None: ...

    async def token(self, pod: PodIdentity, account: str, *, audience: str, seconds: int) -> BoundToken:
        """A token of the account that is bound to the pod: it ends with it."""
        ...


class ClientObjects:
    """Reads each object from the API server whenever it is asked for; while that is away, as it was last.

    So a container with settings from a ConfigMap restarts without the API server, as it does on any node.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._last: OrderedDict[tuple[str, str, str], Data | None] = OrderedDict()

    async def config_map(self, namespace: str, name: str) -> Data | None:
        return await self._read(CONFIG_MAPS, namespace, name, config_map_data)

    async def secret(self, namespace: str, name: str) -> Data | None:
        return await self._read(SECRETS, namespace, name, secret_data)

    async def _read(
        self, resource: Resource[Any], namespace: str, name: str, data_of: Callable[[Mapping[str, object]], Data]
    ) -> Data | None:
        key = (resource.name, namespace, name)
        try:
            found = await self._client.find(resource, name, namespace=namespace)
        except Retryable:
            if self._last.get(key) is None:
                raise
            return self._last[key]
        self._last[key] = None if found is None else data_of(found.document)
        self._last.move_to_end(key)
        if len(self._last) > _MOST_KEPT:
            self._last.popitem(last=False)
        return self._last[key]

    async def token(self, pod: PodIdentity, account: str, *, audience: str, seconds: int) -> BoundToken:
        reference = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid}
        spec = {"audiences": [audience] if audience else [], "expirationSeconds": seconds, "boundObjectRef": reference}
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        try:
            answer = await self._client.call(
                "POST", SERVICE_ACCOUNTS, account, "token", request, namespace=pod.namespace
            )
        except NotFound as error:
            raise MountFailed(f"failed to fetch token: {error}") from None
        status = answer["status"]
        expires = datetime.fromisoformat(status["expirationTimestamp"])
        return BoundToken(status["token"], expires)


def config_map_data(document: Mapping[str, object]) -> Data:
    texts = {key: text.encode() for key, text in _mapping(document, "data").items()}
    return texts | {key: _decoded(text) for key, text in _mapping(document, "binaryData").items()}


def secret_data(document: Mapping[str, object]) -> Data:
    return {key: _decoded(text) for key, text in _mapping(document, "data").items()}


def _mapping(document: Mapping[str, object], key: str) -> Mapping[str, str]:
    value = document.get(key)
    return value if isinstance(value, dict) else {}


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return b""
