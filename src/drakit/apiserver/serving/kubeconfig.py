"""A kubeconfig that reaches this server, ready for kubectl.

In:  the server's address, its CA, and a token or a client certificate.
Out: a file of mode 0600. Certificates and keys are in it, not beside it.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import msgspec
import yaml

from drakit.apiserver.auth.certificates import Pair, write_private

_NAME = "drakit"


class ServerAccess(msgspec.Struct, frozen=True, kw_only=True):
    """How one user reaches the server. Without TLS there is no CA."""

    url: str
    ca: Path | None = None
    token: str = ""
    client: Pair | None = None


def write_kubeconfig(path: Path, access: ServerAccess) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_private(path, yaml.safe_dump(kubeconfig(access), sort_keys=False).encode())


def kubeconfig(access: ServerAccess) -> dict[str, Any]:
    cluster: dict[str, Any] = {"server": access.url}
    if access.ca is not None:
        cluster["certificate-authority-data"] = _inline(access.ca)
    user: dict[str, Any] = {"token": access.token} if access.token else {}
    if access.client is not None:
        user["client-certificate-data"] = _inline(access.client.certificate)
        user["client-key-data"] = _inline(access.client.key)
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": cluster}],
        "users": [{"name": _NAME, "user": user}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME, "namespace": "default"}}],
        "current-context": _NAME,
    }


def _inline(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
