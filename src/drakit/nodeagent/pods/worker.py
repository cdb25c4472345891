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
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from drakit.api import Container, Partial, Pod
from drakit.api.text.times import format_time, parse_time
from drakit.base.errors import DrakitError
from drakit.nodeagent.claims.devices import needs_preparation
from drakit.nodeagent.claims.preparation import PreparationFailed
from drakit.nodeagent.containers.config import log_directory
from drakit.nodeagent.containers.documents import field_of, identity
from drakit.nodeagent.containers.failures import MountFailed, VolumeRefused
from drakit.nodeagent.containers.hooks import LEAST_GRACE, grace_period
from drakit.nodeagent.containers.limits import pod_cgroup_limits
from drakit.nodeagent.pods.containerstatuses import ContainerFacts, Waiting
from drakit.nodeagent.pods.events import NORMAL, WARNING
from drakit.nodeagent.pods.phases import TERMINAL
from drakit.nodeagent.pods.plan import PodPlan, next_attempt, plan, restarts
from drakit.nodeagent.pods.probes import PodProbes
from drakit.nodeagent.pods.retry import Retry
from drakit.nodeagent.pods.runtimeview import RuntimeView
from drakit.nodeagent.pods.services import NodeEviction, PodServices
from drakit.nodeagent.pods.starts import Start, StartFailed
from drakit.nodeagent.pods.statuses import BuiltStatus, PodStatusFacts, build_status, rejected, with_sandbox
from drakit.nodeagent.pods.stops import ContainerStops
from drakit.nodeagent.runtimes.contract import (
    ContainerInfo,
    ContainerState,
    PodIdentity,
    SandboxConfig,
    SandboxState,
)

log = logging.getLogger("drakit.nodeagent")

REFRESH_SECONDS = 60.0
_FILE_VOLUMES = ("configMap", "secret", "projected", "downwardAPI")


@dataclass(slots=True)
class _Memory:
    """What a worker knows beside the runtime and the server; lost with the agent."""

    waiting: dict[str, Waiting] = field(default_factory=dict)
    cause: str = ""
    volumes: dict[str, Path] = field(default_factory=dict)
    admitted: bool = False
    refreshed: float = 0.0


AGAIN = 0.0
NEVER = None
PAST_DEADLINE = NodeEviction("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")


class PodWorker:
    """Invariant: of one pod uid; `run` ends when nothing of the pod is left on the node or the server."""

    def __init__(self, pod: PodIdentity, services: PodServices) -> None:
        self.identity = pod
        self.pod: Partial[Pod] | None = None
        self.over = False
        """Everything is let go and the last status is written; the pod object may still be there."""
        self._gone = False
        self._cleared = False
        """Its sandboxes are removed from the runtime."""
        self._eviction: NodeEviction | None = None
        self._finished = False
        self._silent = False
        self._services = services
        self._wake = asyncio.Event()
        self._retry = Retry()
        self._memory = _Memory()
        self._probes = PodProbes(services.runner, services.clock, services.events, on_change=self.wake)

    # Words from outside

    def wake(self) -> None:
        self._wake.set()

    def first(self, pod: Partial[Pod], *, ended: bool) -> None:
        """The pod as it was found; one that had ended before keeps the status that it has."""
        self._finished = self._silent = ended
        self.update(pod)

    def update(self, pod: Partial[Pod]) -> None:
        self.pod = pod
        self.wake()

    def lose(self) -> None:
        """The pod object is gone from the server, or was never there."""
        self._gone = True
        self.wake()

    def evict(self, eviction: NodeEviction) -> None:
        self._eviction = self._eviction or eviction
        self.wake()

    @property
    def is_ending(self) -> bool:
        return self._gone or self._finished or self._eviction is not None or self._is_deleted()

    @property
    def is_retrying(self) -> bool:
        """Whether something has failed and the next try is due by time alone."""
        return self._retry.pending

    @property
    def _speaks(self) -> bool:
        """Whether to write statuses: the server has the pod, and it had not ended before the agent started."""
        return self.pod is not None and not self._gone and not self._silent

    @property
    def _known(self) -> Partial[Pod]:
        """The pod. Call it only where the server is known to have it."""
        if self.pod is None:
            raise LookupError(f"pod {self.identity.uid} is not on the server")
        return self.pod

    def _put(self, status: dict[str, Any]) -> None:
        self._services.writer.put(self._known, status)

    def _is_deleted(self) -> bool:
        return self.pod is not None and self.pod.view.metadata.deletion_timestamp is not None

    # The loop

    async def run(self) -> None:
        try:
            while not (self.over and self._gone and self._cleared):
                self._wake.clear()  # before the look: what changes during it is looked at again
                wait = await self._look()
                await self._pause(wait)
        finally:
            self._services.waits.end(self.identity.uid)
            await self._probes.stop()

    async def _look(self) -> float | None:
        """Take the next step. Return the seconds until the next look; None: look when something changes."""
        try:
            wait = await (self._end() if self.is_ending else self._sync_until_deadline())
        except DrakitError as error:
            log.warning("pod %s/%s: %s", self.identity.namespace, self.identity.name, error)
            return self._retry.failed()
        if not self._retry.pending:
            self._retry.reset()
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
        self._retry.pending = False
        self._services.waits.end(self.identity.uid)

    # A pod that should run

    async def _sync_until_deadline(self) -> float | None:
        wait = await self._sync()
        left = self._active_seconds_left()
        if left is None or self.is_ending:
            return wait
        if left > 0:
            return left if wait is NEVER else min(wait, left)
        self._services.events.about_pod(self.identity, NORMAL, PAST_DEADLINE.reason, PAST_DEADLINE.message)
        self.evict(PAST_DEADLINE)
        return AGAIN

    def _active_seconds_left(self) -> float | None:
        """Seconds until `activeDeadlineSeconds` after its start are over; None without a deadline."""
        limit = self._known.view.spec.active_deadline_seconds
        last = self._services.writer.last(self.identity.uid) or self._known.document.get("status") or {}
        if limit is None or not last.get("startTime"):
            return None
        started = parse_time(last["startTime"])
        return limit - (self._services.clock.now() - started).total_seconds()

    async def _sync(self) -> float | None:
        view = await self._view()
        if not self._memory.admitted and not self._admit(view):
            return AGAIN
        await self._probes.follow(self._known.document, view)
        built = self._build(view)
        self._put(built.status)
        if built.phase in TERMINAL:
            self._finished = True
            return AGAIN
        steps = self._plan(view)
        if steps.sandbox is not None:
            return await self._make_sandbox(steps.sandbox, view, built)
        if failed := self._probes.failed():
            return await self._end_failed(failed, view)
        self._memory.cause = ""
        if steps.start:
            return await self._start_all(steps.start, view)
        return await self._refresh()

    def _plan(self, view: RuntimeView) -> PodPlan:
        return plan(self._known.view, view, is_started=lambda name: name not in self._probes.unstarted())

    def _admit(self, view: RuntimeView) -> bool:
        """Ask once whether the node takes the pod; one that was here before the agent's start is not asked about."""
        self._memory.admitted = True
        if view.sandboxes or self._known.view.status.phase in ("Running", *TERMINAL):
            return True
        refusal = self._services.admit(self._known)
        if refusal is None:
            return True
        self._services.events.about_pod(self.identity, WARNING, refusal.reason, refusal.message)
        now = format_time(self._services.clock.now())
        status = rejected(self._known.view, self._known.document, refusal.reason, refusal.message, start_time=now)
        self._put(status)
        self._finished = self.over = True
        return False

    async def _make_sandbox(self, attempt: int, view: RuntimeView, built: BuiltStatus) -> float | None:
        services = self._services
        if view.latest_sandbox is not None:
            changed = "Pod sandbox changed, it will be killed and re-created."
            services.events.about_pod(self.identity, NORMAL, "SandboxChanged", changed)
        for each in view.running():
            await self._stops.stop(each, LEAST_GRACE, "")
        try:
            self._memory.volumes = await services.volumes.set_up(self._known.document, services.node())
        except (MountFailed, VolumeRefused) as error:
            return self._wait_for("FailedMount", str(error), view)
        if (wait := await self._prepare(view)) is not None:
            return wait
        try:
            await services.runtime.run_sandbox(self._sandbox(attempt))
        except DrakitError as error:
            return self._wait_for("FailedCreatePodSandBox", f"Failed to create pod sandbox: {error}", view)
        self._memory.cause = ""
        view = await self._view()
        if view.ready_sandbox is not None and not self._gone:
            self._put(with_sandbox(built.status, ip=view.ready_sandbox.ip))
        # What a driver has prepared is used, also when the pod was deleted meanwhile: the end comes with the next look.
        steps = self._plan(view)
        return await self._start_all(steps.start, view) if steps.start else AGAIN

    async def _prepare(self, view: RuntimeView) -> float | None:
        """None when the claims are ready; else seconds until the next try."""
        try:
            await self._services.preparation.prepare(self._known.view)
        except PreparationFailed as error:
            if error.claim is not None:
                self._services.waits.begin(self.identity.uid, error.claim, self.wake)
            message = f"Failed to prepare dynamic resources: {error}"
            return self._wait_for("FailedPrepareDynamicResources", message, view)
        return None

    def _sandbox(self, attempt: int) -> SandboxConfig:
        metadata = self._known.document["metadata"]
        return SandboxConfig(
            pod=self.identity,
            attempt=attempt,
            hostname=(self._known.document["spec"].get("hostname") or self.identity.name)[:63],
            log_directory=str(log_directory(self._services.log_root, self.identity)),
            host_network=self._known.view.spec.host_network,
            labels=metadata.get("labels") or {},
            annotations=metadata.get("annotations") or {},
            limits=pod_cgroup_limits(self._known.document),
        )

    def _wait_for(self, reason: str, message: str, view: RuntimeView) -> float:
        """Report why the pod waits, in an event and in its status, and try again."""
        self._services.events.about_pod(self.identity, WARNING, reason, message)
        self._memory.cause = message
        if not self.is_ending:
            self._put(self._build(view).status)
        return self._retry.failed()

    async def _start_all(self, containers: list[Container], view: RuntimeView) -> float | None:
        again = needs_preparation(self._services.preparation.records, self._known.view)
        if again and (wait := await self._prepare(view)) is not None:
            return wait
        if not self._memory.volumes:
            self._memory.volumes = await self._services.volumes.set_up(self._known.document, self._services.node())
        waits: list[float] = []
        started = False
        for container in containers:
            wait = await self._start_one(container, view)
            started = started or wait is None
            waits += [] if wait is None else [wait]
        if started:
            return AGAIN
        return min(waits)

    async def _start_one(self, container: Container, view: RuntimeView) -> float | None:
        """None when it has been started; else seconds until it may be tried."""
        sandbox, latest = view.ready_sandbox, view.latest(container.name)
        if sandbox is None:
            return AGAIN + 1e-9
        if latest is not None and (wait := self._backoff(container, latest)) > 0:
            return wait
        attempt = next_attempt(view, container.name, self._known_restarts(container.name))
        start = Start(
            self._known.view,
            self._known.document,
            container,
            sandbox,
            attempt,
            self._memory.volumes,
            replace(self._services.node(), pod_ips=(sandbox.ip,) if sandbox.ip else ()),
        )
        try:
            await self._services.starts.start(start)
        except StartFailed as failure:
            self._memory.waiting[container.name] = failure.waiting
            return self._retry.failed()
        self._memory.waiting.pop(container.name, None)
        if latest is not None and latest.finished is not None:
            self._services.backoff.started(self.identity.uid, container.name, finished=latest.finished)
        await self._drop_old(container.name)
        return None

    def _backoff(self, container: Container, latest: ContainerInfo) -> float:
        if latest.state is not ContainerState.EXITED or latest.finished is None:
            return 0.0
        backoff = self._services.backoff
        wait = backoff.wait(self.identity.uid, container.name, finished=latest.finished)
        if wait > 0 and self._memory.waiting.get(container.name) is None:
            message = backoff.message(self.identity, container.name)
            self._memory.waiting[container.name] = Waiting("CrashLoopBackOff", message)
            about = f"{container.name} in pod {self.identity.name}_{self.identity.namespace}({self.identity.uid})"
            self._tell(container.name, WARNING, "BackOff", f"Back-off restarting failed container {about}")
            return AGAIN + 1e-9  # look again at once, so that the status says so
        return wait

    def _known_restarts(self, name: str) -> int:
        last = self._services.writer.last(self.identity.uid) or self._known.document.get("status") or {}
        for key in ("containerStatuses", "initContainerStatuses"):
            for status in last.get(key) or ():
                if status["name"] == name:
                    return int(status["restartCount"])
        return 0

    async def _drop_old(self, name: str) -> None:
        """Of the ended runs of a container, the last one stays for `kubectl logs --previous`."""
        for old in (await self._view()).attempts(name)[2:]:
            await self._services.runtime.remove_container(old.id)

    async def _end_failed(self, failed: Any, view: RuntimeView) -> float:
        """Containers whose probes have failed are ended; the restart policy says what comes then."""
        for info in view.running():
            if info.id in failed:
                grace = grace_period(self._known.document, probe_grace=failed[info.id].grace)
                await self._stops.stop(info, grace, failed[info.id].message)
        return AGAIN

    async def _refresh(self) -> float | None:
        """Files of ConfigMaps and Secrets follow their objects, once a minute."""
        volumes = self._known.document["spec"].get("volumes") or ()
        if not any(kind in volume for volume in volumes for kind in _FILE_VOLUMES):
            return NEVER
        now = self._services.clock.monotonic()
        if now - self._memory.refreshed >= REFRESH_SECONDS:
            self._memory.refreshed = now
            try:
                await self._services.volumes.refresh(self._known.document, self._services.node())
            except (MountFailed, VolumeRefused) as error:
                self._services.events.about_pod(self.identity, WARNING, "FailedMount", str(error))
        return self._memory.refreshed + REFRESH_SECONDS - now

    # The end

    async def _end(self) -> float | None:
        if self.over:
            return await self._remove_object()
        view = await self._view()
        await self._probes.stop()
        self._memory.cause = ""
        if self._speaks:
            self._put(self._build(view).status)
        # Containers, then the sandbox, then claims: no driver may take back a device that a process still uses.
        await self._stops.stop_all(view, self._grace())
        for sandbox in view.sandboxes:
            if sandbox.state is SandboxState.READY:
                await self._services.runtime.stop_sandbox(sandbox.id)
        try:
            await self._services.preparation.unprepare(self.identity.uid, self.pod.view if self.pod else None)
        except PreparationFailed as error:
            message = f"Failed to unprepare dynamic resources: {error}"
            self._services.events.about_pod(self.identity, WARNING, "FailedUnprepareDynamicResources", message)
            return self._retry.failed()
        await self._finish()
        return AGAIN

    async def _finish(self) -> None:
        """End the pod: nothing of it runs, and its claims are unprepared."""
        view = await self._view()
        if self._speaks:
            status = self._build(view, ended=True).status
            if self._eviction is not None:
                status |= self._eviction.status()
                status["conditions"] += self._eviction.conditions()
            self._put(status)
        self._services.volumes.tear_down(self.identity.uid)
        self._services.backoff.forget(self.identity.uid)
        self._services.release(self.identity.uid)
        self.over = True

    async def _remove_object(self) -> float | None:
        if self._gone or self._is_deleted():
            if self.pod is not None and not self._gone:
                # The last status first: once the object is gone, nobody learns how the pod ended.
                await self._services.writer.flush(self.identity.uid)
                await self._services.writer.delete(self.pod)
            for sandbox in (await self._view()).sandboxes:
                await self._services.runtime.remove_sandbox(sandbox.id)
            shutil.rmtree(log_directory(self._services.log_root, self.identity), ignore_errors=True)
            self._services.writer.forget(self.identity.uid)
            self._cleared = True
        return NEVER

    def _grace(self) -> float:
        if self._eviction is not None and self._eviction.grace is not None:
            return self._eviction.grace
        if self.pod is None or (self._gone and not self._is_deleted()):
            return LEAST_GRACE  # deleted by force: nobody waits for it
        return grace_period(self.pod.document)

    @property
    def _stops(self) -> ContainerStops:
        return ContainerStops(self._services, self.identity, self.pod)

    # What is there

    async def _view(self) -> RuntimeView:
        runtime = self._services.runtime
        return RuntimeView.of(self.identity.uid, await runtime.sandboxes(), await runtime.containers())

    def _build(self, view: RuntimeView, *, ended: bool = False) -> BuiltStatus:
        last = self._services.writer.last(self.identity.uid)
        document = {**self._known.document, "status": last} if last is not None else self._known.document
        facts = ContainerFacts(
            self._services.runtime_name,
            view,
            waiting={} if ended or self.is_ending else self._shown_waiting(view),
            cause=self._memory.cause,
            unready=self._probes.unready(),
            unstarted=self._probes.unstarted(),
        )
        node = self._services.node()
        host_ip = node.host_ips[0] if node.host_ips else ""
        return build_status(
            self._known.view,
            document,
            PodStatusFacts(facts, self._services.health, host_ip, evicted=self._eviction is not None),
            ended=ended,
        )

    def _shown_waiting(self, view: RuntimeView) -> dict[str, Waiting]:
        """The waiting reasons of containers that should run and do not."""
        shown = {}
        spec = self._known.view.spec
        for container in (*spec.init_containers, *spec.containers, *spec.ephemeral_containers):
            latest, waiting = view.latest(container.name), self._memory.waiting.get(container.name)
            ended = latest is not None and latest.state is ContainerState.EXITED
            if waiting is not None and (not ended or (latest and restarts(self._known.view, container, latest))):
                shown[container.name] = waiting
        return shown

    def _tell(self, container: str, type_: str, reason: str, message: str) -> None:
        field = field_of(self.pod.document, container) if self.pod is not None else "containers"
        self._services.events.about_pod(self.identity, type_, reason, message, container=container, field=field)


def identity_of(pod: Partial[Pod]) -> PodIdentity:
    return identity(pod.document)
