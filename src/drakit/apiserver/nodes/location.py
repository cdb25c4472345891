"""Where a node's agent listens, from the Node object.

In:  the object as it is stored.
Out: host and port, or why there is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from drakit.apiserver.failures import internal

DEFAULT_PORT = 10250
PREFERRED = ("InternalIP", "ExternalIP", "Hostname", "InternalDNS", "ExternalDNS")
"""Addresses before names, as kubeadm sets it up: a node's name is often known to nobody else."""


class NodeAddress(msgspec.Struct, frozen=True):
    node: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def address_of(node: Mapping[str, Any]) -> NodeAddress:
    """Raise ApiError if the Node object has no address."""
    status = node.get("status") or {}
    known = [(each.get("type"), each.get("address")) for each in status.get("addresses") or ()]
    port = ((status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}).get("Port") or 0
    for wanted in PREFERRED:
        for kind, address in known:
            if kind == wanted and address:
                return NodeAddress(node["metadata"]["name"], address, port if port > 0 else DEFAULT_PORT)
    listed = " ".join(f"{kind}={address}" for kind, address in known)
    name = node["metadata"]["name"]
    raise internal(f'node "{name}": no preferred addresses found; known addresses: [{listed}]')
