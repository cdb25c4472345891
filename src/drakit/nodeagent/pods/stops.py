"""End the containers of a pod: hooks, grace, order, events.

In:  what runs of the pod, how long it may take.
Out: nothing of it runs any more. Regular containers end together, then sidecars, the last one first.
"""

from __future__ import annotations

import asyncio

from drakit.api import Partial, Pod, is_sidecar
from drakit.nodeagent.containers.documents import container_named, field_of
from drakit.nodeagent.containers.handlers import HandlerTarget
from drakit.nodeagent.containers.hooks import LEAST_GRACE, end_container
from drakit.nodeagent.pods.events import NORMAL, WARNING
from drakit.nodeagent.pods.runtimeview import RuntimeView
from drakit.nodeagent.pods.services import PodServices
from drakit.nodeagent.runtimes.contract import ContainerInfo, PodIdentity


class ContainerStops:
    """Of one pod; `pod` is none when the server does not have it any more."""

    def __init__(self, services: PodServices, identity: PodIdentity, pod: Partial[Pod] | None) -> None:
        self._services = services
        self._identity = identity
        self._pod = pod

    async def stop_all(self, view: RuntimeView, grace: float) -> None:
        running = view.running()
        sidecars = [each.name for each in self._pod.view.spec.init_containers if is_sidecar(each)] if self._pod else []
        regular = [each for each in running if each.name not in sidecars]
        await asyncio.gather(*(self.stop(each, grace, f"Stopping container {each.name}") for each in regular))
        for name in reversed(sidecars):
            for each in running:
                if each.name == name:
                    await self.stop(each, grace, f"Stopping container {each.name}")

    async def stop(self, info: ContainerInfo, grace: float, message: str) -> None:
        """With a message, an event tells why."""
        if message:
            self._tell(info.name, NORMAL, "Killing", message)
        container = container_named(self._pod.document, info.name) if self._pod else None
        if container is None:
            await self._services.runtime.stop_container(info.id, grace=max(grace, LEAST_GRACE))
            return
        await end_container(
            HandlerTarget(info.id, container, ""),
            grace=max(grace, LEAST_GRACE),
            runtime=self._services.runtime,
            runner=self._services.runner,
            clock=self._services.clock,
            on_event=lambda reason, text: self._tell(info.name, WARNING, reason, text),
        )

    def _tell(self, container: str, type_: str, reason: str, message: str) -> None:
        field = field_of(self._pod.document, container) if self._pod is not None else "containers"
        self._services.events.about_pod(self._identity, type_, reason, message, container=container, field=field)
