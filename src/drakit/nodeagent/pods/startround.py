"""Start the containers of a pod that should run and do not: claims first, then each when its backoff is over.

In:  the containers that the plan names, what the runtime has.
Out: containers that run; or the seconds until the next try, with the waiting reason for the status.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from drakit.api import Container
from drakit.nodeagent.claims.devices import needs_preparation
from drakit.nodeagent.claims.preparation import PreparationFailed
from drakit.nodeagent.pods.containerstatuses import Waiting
from drakit.nodeagent.pods.events import WARNING
from drakit.nodeagent.pods.plan import next_attempt
from drakit.nodeagent.pods.podstate import PodState
from drakit.nodeagent.pods.retry import AGAIN, AT_ONCE
from drakit.nodeagent.pods.runtimeview import RuntimeView
from drakit.nodeagent.pods.starts import Start, StartFailed
from drakit.nodeagent.runtimes.contract import ContainerInfo, ContainerState


class StartRound:
    """Of one pod."""

    def __init__(self, state: PodState, wake: Callable[[], None]) -> None:
        self._state = state
        self._services = state.services
        self._wake = wake

    async def prepare(self, view: RuntimeView) -> float | None:
        """None when the claims are ready; else seconds until the next try."""
        try:
            await self._services.preparation.prepare(self._state.known.view)
        except PreparationFailed as error:
            if error.claim is not None:
                self._services.waits.begin(self._state.identity.uid, error.claim, self._wake)
            message = f"Failed to prepare dynamic resources: {error}"
            return self._state.wait_for("FailedPrepareDynamicResources", message, view)
        return None

    async def start(self, containers: list[Container], view: RuntimeView) -> float | None:
        """Seconds until the next look."""
        state = self._state
        again = needs_preparation(self._services.preparation.records, state.known.view)
        if again and (wait := await self.prepare(view)) is not None:
            return wait
        if not state.memory.volumes:
            state.memory.volumes = await self._services.volumes.set_up(state.known.document, self._services.node())
        waits: list[float] = []
        started = False
        for container in containers:
            wait = await self._start_one(container, view)
            started = started or wait is None
            waits += [] if wait is None else [wait]
        return AGAIN if started else min(waits)

    async def _start_one(self, container: Container, view: RuntimeView) -> float | None:
        """None when it has been started; else seconds until it may be tried."""
        state, sandbox, latest = self._state, view.ready_sandbox, view.latest(container.name)
        if sandbox is None:
            return AT_ONCE
        if latest is not None and (wait := self._backoff(container, latest)) > 0:
            return wait
        start = Start(
            state.known.view,
            state.known.document,
            container,
            sandbox,
            next_attempt(view, container.name, self._known_restarts(container.name)),
            state.memory.volumes,
            replace(self._services.node(), pod_ips=(sandbox.ip,) if sandbox.ip else ()),
            view,
        )
        await self._drop_unstarted(container.name, view)
        try:
            await self._services.starts.start(start)
        except StartFailed as failure:
            state.memory.waiting[container.name] = failure.waiting
            return state.retry.failed()
        state.memory.waiting.pop(container.name, None)
        if latest is not None and latest.finished is not None:
            self._services.backoff.started(state.identity.uid, container.name, finished=latest.finished)
        await self._drop_old(container.name)
        return None

    def _backoff(self, container: Container, latest: ContainerInfo) -> float:
        if latest.state is not ContainerState.EXITED or latest.finished is None:
            return 0.0
        state, backoff, pod = self._state, self._services.backoff, self._state.identity
        wait = backoff.wait(pod.uid, container.name, finished=latest.finished)
        if wait > 0 and state.memory.waiting.get(container.name) is None:
            state.memory.waiting[container.name] = Waiting("CrashLoopBackOff", backoff.message(pod, container.name))
            about = f"{container.name} in pod {pod.name}_{pod.namespace}({pod.uid})"
            message = f"Back-off restarting failed container {about}"
            state.tell(WARNING, "BackOff", message, container=container.name)
            return AT_ONCE  # so that the status says so
        return wait

    def _known_restarts(self, name: str) -> int:
        last = self._state.last_status
        for key in ("containerStatuses", "initContainerStatuses"):
            for status in last.get(key) or ():
                if status["name"] == name:
                    return int(status["restartCount"])
        return 0

    async def _drop_unstarted(self, name: str, view: RuntimeView) -> None:
        """Remove what was made and never started: by an agent that was killed in between, or by a start that failed.

        The next one gets the same attempt, as no run has been: beside it, this one would look like the newest.
        """
        for left in view.attempts(name):
            if left.state is ContainerState.CREATED:
                await self._services.runtime.remove_container(left.id)

    async def _drop_old(self, name: str) -> None:
        """Of the ended runs of a container, the last one stays for `kubectl logs --previous`."""
        for old in (await self._state.view()).attempts(name)[2:]:
            await self._services.runtime.remove_container(old.id)
