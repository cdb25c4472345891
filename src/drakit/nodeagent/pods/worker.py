"""One pod, from the moment when it is bound to this node until nothing of it is left.

In:  the pod as the server has it; words of change (of the pod, its containers, a driver, a device's health).
Out: sandbox and containers as the spec wants them, claims prepared before and unprepared after, statuses, events.

A worker does one thing at a time and looks again after each: it is level-triggered. What fails is tried again after
1 s, 2 s, 4 s, ... at most 10 s, or as soon as something has changed. A call to a driver is never cut short.

    waits -> (claims) -> sandbox -> init containers -> containers -> ... -> ending -> (claims) -> over
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from drakit.api import Partial, Pod
from drakit.api.text.times import format_time, parse_time
from drakit.base.errors import DrakitError
from drakit.nodeagent.containers.config import log_directory
from drakit.nodeagent.containers.documents import identity
from drakit.nodeagent.containers.failures import MountFailed, VolumeRefused
from drakit.nodeagent.containers.hooks import LEAST_GRACE, grace_period
from drakit.nodeagent.containers.limits import pod_cgroup_limits
from drakit.nodeagent.pods.events import NORMAL, WARNING
from drakit.nodeagent.pods.phases import TERMINAL
from drakit.nodeagent.pods.plan import PodPlan, plan
from drakit.nodeagent.pods.podstate import PodState
from drakit.nodeagent.pods.probes import PodProbes
from drakit.nodeagent.pods.removal import PodRemoval
from drakit.nodeagent.pods.retry import AGAIN, NEVER
from drakit.nodeagent.pods.runtimeview import RuntimeView
from drakit.nodeagent.pods.services import NodeEviction, PodServices
from drakit.nodeagent.pods.startround import StartRound
from drakit.nodeagent.pods.statuses import BuiltStatus, rejected, with_sandbox
from drakit.nodeagent.pods.stops import ContainerStops
from drakit.nodeagent.runtimes.contract import PodIdentity, SandboxConfig

log = logging.getLogger("drakit.nodeagent")

REFRESH_SECONDS = 60.0
_FILE_VOLUMES = ("configMap", "secret", "projected", "downwardAPI")
PAST_DEADLINE = NodeEviction("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")


class PodWorker:
    """Invariant: of one pod uid; `run` ends when nothing of the pod is left on the node or the server."""

    def __init__(self, pod: PodIdentity, services: PodServices) -> None:
        self.identity = pod
        self._services = services
        self._wake = asyncio.Event()
        self._probes = PodProbes(services.runner, services.clock, services.events, on_change=self.wake)
        self._state = PodState(pod, services, self._probes)
        self._starts = StartRound(self._state, self.wake)
        self._removal = PodRemoval(self._state)

    # Words from outside

    def wake(self) -> None:
        self._wake.set()

    def first(self, pod: Partial[Pod], *, ended: bool) -> None:
        """The pod as it was found; one that had ended before keeps the status that it has."""
        self._state.finished = self._state.silent = ended
        self.update(pod)

    def update(self, pod: Partial[Pod]) -> None:
        self.pod = pod
        self.wake()

    def lose(self) -> None:
        """The pod object is gone from the server, or was never there."""
        self._state.gone = True
        self.wake()

    def evict(self, eviction: NodeEviction) -> None:
        self._state.eviction = self._state.eviction or eviction
        self.wake()

    @property
    def pod(self) -> Partial[Pod] | None:
        """As the server has it; None when it does not."""
        return self._state.pod

    @pod.setter
    def pod(self, pod: Partial[Pod]) -> None:
        self._state.pod = pod

    @property
    def over(self) -> bool:
        """Everything is let go and the last status is written; the pod object may still be there."""
        return self._state.over

    @property
    def is_ending(self) -> bool:
        return self._state.is_ending

    @property
    def is_retrying(self) -> bool:
        """Whether something has failed and the next try is due by time alone."""
        return self._state.retry.pending

    # The loop

    async def run(self) -> None:
        state = self._state
        try:
            while not state.is_done:
                self._wake.clear()  # before the look: what changes during it is looked at again
                wait = await self._look()
                # Of a pod that was deleted by force, nobody tells anything more: there is nothing to wait for.
                if not state.is_done:
                    await self._pause(wait)
        finally:
            self._services.waits.end(self.identity.uid)
            await self._probes.stop()

    async def _look(self) -> float | None:
        """Take the next step. Return the seconds until the next look; None: look when something changes."""
        retry = self._state.retry
        try:
            wait = await (self._removal.end() if self.is_ending else self._sync_until_deadline())
        except DrakitError as error:
            log.warning("pod %s/%s: %s", self.identity.namespace, self.identity.name, error)
            return retry.failed()
        except Exception:
            # A full disk, a bug: without its worker the pod would be left alone until the agent's next start.
            log.exception("pod %s/%s: the next step has failed", self.identity.namespace, self.identity.name)
            return retry.failed()
        if not retry.pending:
            retry.reset()
        return wait

    async def _pause(self, wait: float | None) -> None:
        if wait is not None and wait <= 0:
            await asyncio.sleep(0)
        elif wait is None:
            await self._wake.wait()
        elif not self._wake.is_set():
            alarm = asyncio.ensure_future(self._services.clock.sleep(wait))
            word = asyncio.ensure_future(self._wake.wait())
            try:
                await asyncio.wait((alarm, word), return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in (alarm, word):
                    each.cancel()
                await asyncio.gather(alarm, word, return_exceptions=True)
        self._state.retry.pending = False
        self._services.waits.end(self.identity.uid)

    # A pod that should run

    async def _sync_until_deadline(self) -> float | None:
        wait = await self._sync()
        left = self._active_seconds_left()
        if left is None or self.is_ending:
            return wait
        if left > 0:
            return left if wait is NEVER else min(wait, left)
        self._state.tell(NORMAL, PAST_DEADLINE.reason, PAST_DEADLINE.message)
        self.evict(PAST_DEADLINE)
        return AGAIN

    def _active_seconds_left(self) -> float | None:
        """Seconds until `activeDeadlineSeconds` after its start are over; None without a deadline."""
        limit, start = self._state.known.view.spec.active_deadline_seconds, self._state.last_status.get("startTime")
        if limit is None or not start:
            return None
        return limit - (self._services.clock.now() - parse_time(start)).total_seconds()

    async def _sync(self) -> float | None:
        state = self._state
        view = await state.view()
        if not state.memory.admitted and not self._admit(view):
            return AGAIN
        await self._probes.follow(state.known.document, view)
        built = state.build(view)
        state.put(built.status)
        if built.phase in TERMINAL:
            state.finished = True
            return AGAIN
        steps = self._plan(view)
        if steps.sandbox is not None:
            return await self._make_sandbox(steps.sandbox, view, built)
        if failed := self._probes.failed():
            return await self._end_failed(failed, view)
        state.memory.cause = ""
        if steps.start:
            return await self._starts.start(steps.start, view)
        return await self._refresh()

    def _plan(self, view: RuntimeView) -> PodPlan:
        return plan(self._state.known.view, view, is_started=lambda name: name not in self._probes.unstarted())

    def _admit(self, view: RuntimeView) -> bool:
        """Ask once whether the node takes the pod; one that was here before the agent's start is not asked about."""
        state, pod = self._state, self._state.known
        state.memory.admitted = True
        if view.sandboxes or pod.view.status.phase in ("Running", *TERMINAL):
            return True
        refusal = self._services.admit(pod)
        if refusal is None:
            return True
        state.tell(WARNING, refusal.reason, refusal.message)
        now = format_time(self._services.clock.now())
        state.put(rejected(pod.view, pod.document, refusal.reason, refusal.message, start_time=now))
        state.finished = state.over = True
        return False

    async def _make_sandbox(self, attempt: int, view: RuntimeView, built: BuiltStatus) -> float | None:
        services, state = self._services, self._state
        if view.latest_sandbox is not None:
            state.tell(NORMAL, "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.")
        for each in view.running():
            await self._stops.stop(each, LEAST_GRACE, "")
        try:
            state.memory.volumes = await services.volumes.set_up(state.known.document, services.node())
        except (MountFailed, VolumeRefused) as error:
            return state.wait_for("FailedMount", str(error), view)
        if (wait := await self._starts.prepare(view)) is not None:
            return wait
        try:
            await services.runtime.run_sandbox(self._sandbox(attempt))
        except DrakitError as error:
            return state.wait_for("FailedCreatePodSandBox", f"Failed to create pod sandbox: {error}", view)
        state.memory.cause = ""
        view = await state.view()
        if view.ready_sandbox is not None and not state.gone:
            state.put(with_sandbox(built.status, ip=view.ready_sandbox.ip))
        # What a driver has prepared is used, also when the pod was deleted meanwhile: the end comes with the next look.
        steps = self._plan(view)
        return await self._starts.start(steps.start, view) if steps.start else AGAIN

    def _sandbox(self, attempt: int) -> SandboxConfig:
        pod = self._state.known
        metadata = pod.document["metadata"]
        return SandboxConfig(
            pod=self.identity,
            attempt=attempt,
            hostname=(pod.document["spec"].get("hostname") or self.identity.name)[:63],
            log_directory=str(log_directory(self._services.log_root, self.identity)),
            host_network=pod.view.spec.host_network,
            labels=metadata.get("labels") or {},
            annotations=metadata.get("annotations") or {},
            limits=pod_cgroup_limits(pod.document, with_claims=self._services.limits_with_claims),
        )

    async def _end_failed(self, failed: Any, view: RuntimeView) -> float:
        """Containers whose probes have failed are ended; the restart policy says what comes then."""
        for info in view.running():
            if info.id in failed:
                grace = grace_period(self._state.known.document, probe_grace=failed[info.id].grace)
                await self._stops.stop(info, grace, failed[info.id].message)
        return AGAIN

    async def _refresh(self) -> float | None:
        """Files of ConfigMaps and Secrets follow their objects, once a minute."""
        document, memory = self._state.known.document, self._state.memory
        volumes = document["spec"].get("volumes") or ()
        if not any(kind in volume for volume in volumes for kind in _FILE_VOLUMES):
            return NEVER
        now = self._services.clock.monotonic()
        # The same sum as below: with a difference here, rounding could say "not yet" and "at once" for ever.
        if now >= memory.refreshed + REFRESH_SECONDS:
            memory.refreshed = now
            try:
                await self._services.volumes.refresh(document, self._services.node())
            except (MountFailed, VolumeRefused) as error:
                self._state.tell(WARNING, "FailedMount", str(error))
        return memory.refreshed + REFRESH_SECONDS - now

    @property
    def _stops(self) -> ContainerStops:
        return ContainerStops(self._services, self.identity, self.pod)


def identity_of(pod: Partial[Pod]) -> PodIdentity:
    return identity(pod.document)
