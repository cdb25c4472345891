"""How one node agent is set up: its name, where it keeps what, what of the machine is whose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drakit.base.gates import FeatureGates
from drakit.base.quantity import Quantity
from drakit.nodeagent.containers.logrotation import LogBounds
from drakit.nodeagent.node.facts import MachineFacts
from drakit.nodeagent.node.thresholds import Threshold


@dataclass(frozen=True, slots=True)
class AgentPaths:
    """Everything is below one directory unless told otherwise, laid out as a kubelet does."""

    root: Path
    registry: Path
    """Where plugins register."""
    plugins: Path
    device_plugins: Path
    pods: Path
    logs: Path
    pod_resources: Path | None
    """The socket of PodResources; none to serve none."""

    @staticmethod
    def below(root: Path) -> AgentPaths:
        return AgentPaths(
            root=root,
            registry=root / "plugins_registry",
            plugins=root / "plugins",
            device_plugins=root / "device-plugins",
            pods=root / "pods",
            logs=root / "logs",
            pod_resources=root / "pod-resources" / "kubelet.sock",
        )

    def make(self) -> None:
        for path in (self.root, self.registry, self.plugins, self.device_plugins, self.pods, self.logs):
            path.mkdir(parents=True, exist_ok=True)


@dataclass(frozen=True, slots=True)
class AgentSettings:
    node: str
    paths: AgentPaths
    machine: MachineFacts
    gates: FeatureGates
    system_reserved: Mapping[str, Quantity] = field(default_factory=dict)
    kube_reserved: Mapping[str, Quantity] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, Any], ...] = ()
    limits_with_claims: bool = False
    """drakit's own switch: cgroup limits, OOM score and eviction rank count claims too."""
    shutdown_grace: float = 0.0
    shutdown_grace_critical: float = 0.0
    serves_device_plugins: bool = True
    eviction_hard: tuple[Threshold, ...] = ()
    """When the node is short of something and ends pods; empty for never."""
    logs: LogBounds | None = None
    """How large logs may grow; none where no container writes any."""
    registers: bool = True
    """Whether the agent makes its Node object; without, somebody else does."""
