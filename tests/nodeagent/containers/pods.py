"""Pod documents and objects for the tests of this folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from drakit.base.clock import Clock, FakeClock
from drakit.nodeagent.containers.sources import BoundToken, Data
from drakit.nodeagent.runtimes.contract import PodIdentity


def stored_pod(
    *containers: Mapping[str, Any], metadata: Mapping[str, Any] | None = None, **spec: Any
) -> dict[str, Any]:
    return {
        "metadata": {"name": "web", "namespace": "shop", "uid": "u-1"} | dict(metadata or {}),
        "spec": {"containers": list(containers) or [container()], "nodeName": "node-a"} | spec,
    }


def container(name: str = "main", **changes: Any) -> dict[str, Any]:
    return {"name": name, "image": "tool"} | changes


@dataclass
class Objects:
    """Keeps the ObjectSource contract from dictionaries, and counts what is asked."""

    config_maps: dict[str, Data] = field(default_factory=dict)
    secrets: dict[str, Data] = field(default_factory=dict)
    clock: Clock = field(default_factory=FakeClock)
    asked: list[str] = field(default_factory=list)

    async def config_map(self, namespace: str, name: str) -> Data | None:
        self.asked.append(f"configmap {namespace}/{name}")
        return self.config_maps.get(name)

    async def secret(self, namespace: str, name: str) -> Data | None:
        self.asked.append(f"secret {namespace}/{name}")
        return self.secrets.get(name)

    async def token(self, pod: PodIdentity, account: str, *, audience: str, seconds: int) -> BoundToken:
        self.asked.append(f"token {pod.namespace}/{account} for {audience} {seconds}")
        return BoundToken(f"token-{len(self.asked)}", self.clock.now() + timedelta(seconds=seconds))
