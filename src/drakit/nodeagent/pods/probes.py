"""The probes of the containers that run.

In:  containers as they start and end.
Out: which of them are not started or not ready, which have failed; a word to the pod's worker whenever that changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from drakit.base.clock import Clock
from drakit.nodeagent.containers.documents import Document, container_named, field_of, identity
from drakit.nodeagent.containers.handlers import HandlerRunner, HandlerTarget
from drakit.nodeagent.containers.probes import ContainerProbes, ProbeFailure
from drakit.nodeagent.pods.events import WARNING, EventLog
from drakit.nodeagent.pods.runtimeview import RuntimeView
from drakit.nodeagent.runtimes.contract import ContainerInfo

_PROBES = ("startupProbe", "readinessProbe", "livenessProbe")


class PodProbes:
    """Of one pod. Invariant: a container has probes exactly while it runs and its spec names some."""

    def __init__(self, runner: HandlerRunner, clock: Clock, events: EventLog, *, on_change: Callable[[], None]) -> None:
        self._runner = runner
        self._clock = clock
        self._events = events
        self._on_change = on_change
        self._running: dict[str, tuple[str, ContainerProbes]] = {}

    async def follow(self, document: Document, view: RuntimeView) -> None:
        """Begin probes of containers that run now, end those of others."""
        wanted = {each.id: each for each in view.running() if _has_probes(document, each.name)}
        for container_id in [each for each in self._running if each not in wanted]:
            await self._end(container_id)
        for container_id, info in wanted.items():
            if container_id not in self._running:
                await self._begin(document, info, view)

    async def stop(self) -> None:
        for container_id in list(self._running):
            await self._end(container_id)

    def unready(self) -> frozenset[str]:
        return frozenset(name for name, probes in self._running.values() if not probes.ready)

    def unstarted(self) -> frozenset[str]:
        return frozenset(name for name, probes in self._running.values() if not probes.started)

    def failed(self) -> Mapping[str, ProbeFailure]:
        """The probe failures, by container id."""
        return {each: probes.failed for each, (_, probes) in self._running.items() if probes.failed is not None}

    async def _begin(self, document: Document, info: ContainerInfo, view: RuntimeView) -> None:
        container = container_named(document, info.name) or {}
        sandbox = view.ready_sandbox
        pod = identity(document)
        probes = ContainerProbes(
            HandlerTarget(info.id, container, sandbox.ip if sandbox is not None else ""),
            runner=self._runner,
            clock=self._clock,
            on_change=self._on_change,
            on_event=lambda reason, message: self._events.about_pod(
                pod, WARNING, reason, message, container=info.name, field=field_of(document, info.name)
            ),
        )
        self._running[info.id] = (info.name, probes)
        await probes.__aenter__()

    async def _end(self, container_id: str) -> None:
        _, probes = self._running.pop(container_id)
        await probes.__aexit__(None, None, None)


def _has_probes(document: Document, name: str) -> bool:
    container = container_named(document, name)
    return container is not None and any(container.get(probe) for probe in _PROBES)
