"""Where ConfigMaps, Secrets and service account tokens come from.

In:  names that a pod's environment and volumes use.
Out: their data as bytes; None for an object that is not there.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from drakit.client import CONFIG_MAPS, SECRETS, SERVICE_ACCOUNTS, Client, NotFound
from drakit.nodeagent.containers.failures import MountFailed
from drakit.nodeagent.runtimes.contract import PodIdentity

Data = Mapping[str, bytes]


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
    """Reads each object from the API server whenever it is asked for."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def config_map(self, namespace: str, name: str) -> Data | None:
        found = await self._client.find(CONFIG_MAPS, name, namespace=namespace)
        return None if found is None else config_map_data(found.document)

    async def secret(self, namespace: str, name: str) -> Data | None:
        found = await self._client.find(SECRETS, name, namespace=namespace)
        return None if found is None else secret_data(found.document)

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
