"""What the workers of a node share, and the words between them and the node.

In:  the parts of the agent.
Out: one bundle for every worker; why a pod is turned away, why one is ended.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drakit.api import Partial, Pod
from drakit.base.clock import Clock
from drakit.nodeagent.claims.preparation import ClaimPreparation
from drakit.nodeagent.claims.waits import ClaimWaits
from drakit.nodeagent.containers.backoff import RestartBackoff
from drakit.nodeagent.containers.fieldrefs import NodeFacts
from drakit.nodeagent.containers.handlers import HandlerRunner
from drakit.nodeagent.containers.volumes import VolumeStore
from drakit.nodeagent.pods.containerstatuses import HealthView
from drakit.nodeagent.pods.events import EventLog
from drakit.nodeagent.pods.starts import ContainerStarts
from drakit.nodeagent.pods.writer import StatusWriter
from drakit.nodeagent.runtimes.contract import Runtime


@dataclass(frozen=True, slots=True)
class Rejection:
    """The reason and message of a pod that the node does not admit."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class NodeEviction:
    """Why the node ends a pod that nobody deleted."""

    reason: str
    message: str
    grace: float | None = None
    disruption: str = ""
    """What the condition DisruptionTarget says; without it there is no such condition."""

    def status(self) -> dict[str, Any]:
        """What the last status of the pod says of it."""
        return {"reason": self.reason, "message": self.message}

    def conditions(self) -> list[dict[str, Any]]:
        if not self.disruption:
            return []
        about = {"reason": "TerminationByKubelet", "message": self.disruption}
        return [{"type": "DisruptionTarget", "status": "True", **about}]


@dataclass(frozen=True, slots=True)
class PodServices:
    """What the workers of a node share."""

    clock: Clock
    runtime: Runtime
    runtime_name: str
    preparation: ClaimPreparation
    waits: ClaimWaits
    health: HealthView
    writer: StatusWriter
    events: EventLog
    starts: ContainerStarts
    runner: HandlerRunner
    volumes: VolumeStore
    backoff: RestartBackoff
    log_root: Path
    node: Callable[[], NodeFacts]
    admit: Callable[[Partial[Pod]], Rejection | None]
    release: Callable[[str], None]
    """Give back what device plugins gave to a pod."""
    limits_with_claims: bool = False
    """Whether what claims take of the node raises cgroup limits."""
