"""What is known of one pod on its node, and how that is told.

In:  the pod as the server has it; what the runtime has of it; what its worker remembers.
Out: statuses for the server, events, and whether the pod is to end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drakit.api import Partial, Pod
from drakit.nodeagent.containers.documents import field_of
from drakit.nodeagent.pods.containerstatuses import ContainerFacts, Waiting
from drakit.nodeagent.pods.events import WARNING
from drakit.nodeagent.pods.plan import restarts
from drakit.nodeagent.pods.probes import PodProbes
from drakit.nodeagent.pods.retry import Retry
from drakit.nodeagent.pods.runtimeview import RuntimeView
from drakit.nodeagent.pods.services import NodeEviction, PodServices
from drakit.nodeagent.pods.statuses import BuiltStatus, PodStatusFacts, build_status
from drakit.nodeagent.runtimes.contract import ContainerState, PodIdentity


@dataclass(slots=True)
class PodMemory:
    """What a worker knows beside the runtime and the server; lost with the agent."""

    waiting: dict[str, Waiting] = field(default_factory=dict)
    cause: str = ""
    volumes: dict[str, Path] = field(default_factory=dict)
    admitted: bool = False
    refreshed: float = 0.0


class PodState:
    """Of one pod uid. Its worker alone changes it."""

    def __init__(self, identity: PodIdentity, services: PodServices, probes: PodProbes) -> None:
        self.identity = identity
        self.pod: Partial[Pod] | None = None
        self.services = services
        self.probes = probes
        self.memory = PodMemory()
        self.retry = Retry()
        self.eviction: NodeEviction | None = None
        self.gone = False
        """The pod object is gone from the server, or was never there."""
        self.finished = False
        """All containers have ended for good, or the node does not take the pod."""
        self.silent = False
        """It had ended before the agent started: it keeps the status that it has."""
        self.over = False
        """Everything is let go and the last status is written; the pod object may still be there."""
        self.cleared = False
        """Its sandboxes are removed from the runtime."""

    @property
    def is_done(self) -> bool:
        """Nothing of the pod is left, here and on the server."""
        return self.over and self.gone and self.cleared

    @property
    def is_ending(self) -> bool:
        return self.gone or self.finished or self.eviction is not None or self.is_deleted

    @property
    def is_deleted(self) -> bool:
        return self.pod is not None and self.pod.view.metadata.deletion_timestamp is not None

    @property
    def speaks(self) -> bool:
        """Whether to write statuses: the server has the pod, and it had not ended before the agent started."""
        return self.pod is not None and not self.gone and not self.silent

    @property
    def known(self) -> Partial[Pod]:
        """The pod. Call it only where the server is known to have it."""
        if self.pod is None:
            raise LookupError(f"pod {self.identity.uid} is not on the server")
        return self.pod

    @property
    def last_status(self) -> dict[str, Any]:
        """The newest status that was given for the pod, written or not."""
        return self.services.writer.last(self.identity.uid) or self.known.document.get("status") or {}

    async def view(self) -> RuntimeView:
        runtime = self.services.runtime
        return RuntimeView.of(self.identity.uid, await runtime.sandboxes(), await runtime.containers())

    # Told to the server

    def put(self, status: dict[str, Any]) -> None:
        self.services.writer.put(self.known, status)

    def tell(self, type_: str, reason: str, message: str, *, container: str = "") -> None:
        """An event about the pod, or about one of its containers."""
        field = field_of(self.pod.document, container) if self.pod is not None and container else "containers"
        self.services.events.about_pod(self.identity, type_, reason, message, container=container, field=field)

    def wait_for(self, reason: str, message: str, view: RuntimeView) -> float:
        """Report why the pod waits, in an event and in its status. Return the seconds until the next try."""
        self.tell(WARNING, reason, message)
        self.memory.cause = message
        if not self.is_ending:
            self.put(self.build(view).status)
        return self.retry.failed()

    def build(self, view: RuntimeView, *, ended: bool = False) -> BuiltStatus:
        last = self.services.writer.last(self.identity.uid)
        document = {**self.known.document, "status": last} if last is not None else self.known.document
        facts = ContainerFacts(
            self.services.runtime_name,
            view,
            waiting={} if ended or self.is_ending else self._shown_waiting(view),
            cause=self.memory.cause,
            unready=self.probes.unready(),
            unstarted=self.probes.unstarted(),
        )
        node = self.services.node()
        host_ip = node.host_ips[0] if node.host_ips else ""
        return build_status(
            self.known.view,
            document,
            PodStatusFacts(facts, self.services.health, host_ip, evicted=self.eviction is not None),
            ended=ended,
        )

    def _shown_waiting(self, view: RuntimeView) -> dict[str, Waiting]:
        """The waiting reasons of containers that should run and do not."""
        shown = {}
        spec = self.known.view.spec
        for container in (*spec.init_containers, *spec.containers, *spec.ephemeral_containers):
            latest, waiting = view.latest(container.name), self.memory.waiting.get(container.name)
            ended = latest is not None and latest.state is ContainerState.EXITED
            if waiting is not None and (not ended or (latest and restarts(self.known.view, container, latest))):
                shown[container.name] = waiting
        return shown
