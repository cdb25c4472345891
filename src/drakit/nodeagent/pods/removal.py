"""The end of a pod on its node: containers, sandbox, claims, last status; then the object on the server.

In:  a pod that is to end.
Out: nothing of it is left. What fails is tried again; the order stays.
"""

from __future__ import annotations

import shutil

from drakit.nodeagent.claims.preparation import PreparationFailed
from drakit.nodeagent.containers.config import log_directory
from drakit.nodeagent.containers.hooks import LEAST_GRACE, grace_period
from drakit.nodeagent.pods.events import WARNING
from drakit.nodeagent.pods.podstate import PodState
from drakit.nodeagent.pods.retry import AGAIN, NEVER
from drakit.nodeagent.pods.stops import ContainerStops
from drakit.nodeagent.runtimes.contract import SandboxState


class PodRemoval:
    """Of one pod."""

    def __init__(self, state: PodState) -> None:
        self._state = state
        self._services = state.services

    async def end(self) -> float | None:
        """Take the next step. Return the seconds until the next look."""
        state = self._state
        if state.over:
            return await self._remove_object()
        view = await state.view()
        await state.probes.stop()
        state.memory.cause = ""
        if state.speaks:
            state.put(state.build(view).status)
        # Containers, then the sandbox, then claims: no driver may take back a device that a process still uses.
        await ContainerStops(self._services, state.identity, state.pod).stop_all(view, self._grace())
        for sandbox in view.sandboxes:
            if sandbox.state is SandboxState.READY:
                await self._services.runtime.stop_sandbox(sandbox.id)
        try:
            await self._services.preparation.unprepare(state.identity.uid, state.pod.view if state.pod else None)
        except PreparationFailed as error:
            message = f"Failed to unprepare dynamic resources: {error}"
            state.tell(WARNING, "FailedUnprepareDynamicResources", message)
            return state.retry.failed()
        await self._finish()
        return AGAIN

    async def _finish(self) -> None:
        """Nothing of the pod runs any more, and its claims are unprepared."""
        state, uid = self._state, self._state.identity.uid
        view = await state.view()
        if state.speaks:
            status = state.build(view, ended=True).status
            if state.eviction is not None:
                status |= state.eviction.status()
                status["conditions"] += state.eviction.conditions()
            state.put(status)
        self._services.volumes.tear_down(uid)
        self._services.backoff.forget(uid)
        self._services.release(uid)
        state.over = True

    async def _remove_object(self) -> float | None:
        state, uid = self._state, self._state.identity.uid
        if state.gone or state.is_deleted:
            if state.pod is not None and not state.gone:
                # The last status first: once the object is gone, nobody learns how the pod ended.
                await self._services.writer.flush(uid)
                await self._services.writer.delete(state.pod)
            for sandbox in (await state.view()).sandboxes:
                await self._services.runtime.remove_sandbox(sandbox.id)
            shutil.rmtree(log_directory(self._services.log_root, state.identity), ignore_errors=True)
            self._services.writer.forget(uid)
            state.cleared = True
        return NEVER

    def _grace(self) -> float:
        state = self._state
        if state.eviction is not None and state.eviction.grace is not None:
            return state.eviction.grace
        if state.pod is None or (state.gone and not state.is_deleted):
            return LEAST_GRACE  # deleted by force: nobody waits for it
        return grace_period(state.pod.document)
