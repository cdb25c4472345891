"""Which addresses and ports services have, by value: an index, so that a write of a service reads no others.

In:  services as they are stored, in the order of writes (see `Follower`).
Out: whether an address or a port is another service's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from drakit.api.registry import Kind

Service = tuple[str, str]
"""Namespace and name."""


class ServiceLedger:
    """What is in use. Invariant: `_users` counts, for each value, the services in `_used` that have it."""

    def __init__(self) -> None:
        self._used: dict[Service, frozenset[str | int]] = {}
        self._users: Counter[str | int] = Counter()

    def put(self, kind: Kind, document: Mapping[str, Any]) -> None:  # noqa: ARG002
        metadata, spec = document["metadata"], document.get("spec") or {}
        service = metadata.get("namespace", ""), metadata["name"]
        self._forget(service)
        used = frozenset((*(spec.get("clusterIPs") or [spec.get("clusterIP") or ""]), *node_ports(spec)))
        self._used[service] = used
        self._users.update(used)

    def remove(self, kind: Kind, namespace: str, name: str) -> None:  # noqa: ARG002
        self._forget((namespace, name))

    def is_used(self, value: str | int, service: Service) -> bool:
        """Whether a service other than this one has the address or the port."""
        return self._users[value] > (value in self._used.get(service, ()))

    def _forget(self, service: Service) -> None:
        for value in self._used.pop(service, ()):
            self._users[value] -= 1
            if not self._users[value]:
                del self._users[value]


def node_ports(spec: Mapping[str, Any]) -> list[int]:
    found = [port.get("nodePort") for port in spec.get("ports") or ()] + [spec.get("healthCheckNodePort")]
    return [number for number in found if number]
