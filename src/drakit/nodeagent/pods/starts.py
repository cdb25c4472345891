"""Start one container: image, devices, configuration, create, start, hook.

In:  a pod, one of its containers, the sandbox it goes into.
Out: a running container, with the events that a kubelet makes on the way; or StartFailed with the waiting reason.

StartFailed      (Retryable) the container does not run; carries why, for its status
TargetUnknown    (Retryable) the container that an ephemeral one is to look into has never been started
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from drakit.api import Container, Pod
from drakit.base.errors import DrakitError, Retryable
from drakit.nodeagent.claims.devices import ClaimUnknown, cdi_ids
from drakit.nodeagent.claims.records import ClaimRecords
from drakit.nodeagent.containers.config import ContainerSettings, container_config
from drakit.nodeagent.containers.documents import container_named, field_of, identity
from drakit.nodeagent.containers.failures import ConfigUnavailable, HookFailed, MountFailed, VolumeRefused
from drakit.nodeagent.containers.fieldrefs import NodeFacts
from drakit.nodeagent.containers.handlers import HandlerRunner, HandlerTarget
from drakit.nodeagent.containers.hooks import LEAST_GRACE, run_post_start
from drakit.nodeagent.containers.sources import ObjectSource
from drakit.nodeagent.devices.allocation import DeviceAllocation, DeviceGrant, DevicesUnavailable
from drakit.nodeagent.metrics import AgentMetrics
from drakit.nodeagent.pods.containerstatuses import Waiting
from drakit.nodeagent.pods.events import NORMAL, WARNING, EventLog
from drakit.nodeagent.pods.runtimeview import RuntimeView
from drakit.nodeagent.runtimes.contract import ContainerConfig, ImageUnavailable, Runtime, RuntimeRefusal, SandboxInfo

Document = Mapping[str, Any]
_KINDS = {
    "containers": "container",
    "initContainers": "init_container",
    "ephemeralContainers": "ephemeral_container",
}
"""As the kubelet's metrics of starts call them."""


class StartFailed(Retryable):
    def __init__(self, waiting: Waiting) -> None:
        super().__init__(f"{waiting.reason}: {waiting.message}")
        self.waiting = waiting


class TargetUnknown(Retryable):
    """There is no container of that name, or not yet."""


@dataclass(frozen=True, slots=True)
class Start:
    """One start of a container."""

    pod: Pod
    document: Document
    container: Container
    sandbox: SandboxInfo
    attempt: int
    volumes: Mapping[str, Path]
    node: NodeFacts
    view: RuntimeView


class ContainerStarts:
    """Starts containers of all pods of the node."""

    def __init__(
        self,
        runtime: Runtime,
        records: ClaimRecords,
        objects: ObjectSource,
        events: EventLog,
        metrics: AgentMetrics,
        runner: HandlerRunner,
        devices: DeviceAllocation,
        *,
        pods_directory: Path,
        node_memory: int = 0,
        extended: bool = True,
        limits_with_claims: bool = False,
    ) -> None:
        """`extended`: extended resources may be backed by claims (a feature gate)."""
        self._runtime = runtime
        self._records = records
        self._objects = objects
        self._events = events
        self._metrics = metrics
        self._runner = runner
        self._devices = devices
        self._pods_directory = pods_directory
        self._node_memory = node_memory
        self._extended = extended
        self._limits_with_claims = limits_with_claims

    async def start(self, start: Start) -> str:
        """The container's id. Raise StartFailed."""
        kind = _KINDS[field_of(start.document, start.container.name)]
        try:
            container_id = await self._start(start)
        except StartFailed as failure:
            self._metrics.failed_to_start_container(kind, failure.waiting.reason)
            raise
        self._metrics.started_container(kind)
        return container_id

    async def _start(self, start: Start) -> str:
        await self._pull(start)
        container_id = await self._create(start)
        try:
            await self._runtime.start_container(container_id)
        except DrakitError as error:
            raise self._failed(start, Waiting("RunContainerError", str(error))) from None
        self._tell(start, NORMAL, "Started", "Container started")
        await self._post_start(start, container_id)
        return container_id

    async def _pull(self, start: Start) -> None:
        image, policy = start.container.image, self._document(start).get("imagePullPolicy") or "IfNotPresent"
        try:
            reference = await self._runtime.ensure_image(image, pull_policy=policy)
        except RuntimeRefusal as error:
            self._tell(start, WARNING, error.reason, str(error))
            raise StartFailed(Waiting(error.reason, str(error))) from None
        except ImageUnavailable as error:
            self._tell(start, WARNING, "Failed", f'Failed to pull image "{image}": {error}')
            self._tell(start, WARNING, "Failed", "Error: ErrImagePull")
            raise StartFailed(Waiting("ErrImagePull", str(error))) from None
        except DrakitError as error:
            raise self._failed(start, Waiting("ErrImagePull", str(error))) from None
        if reference:
            present = f'Container image "{image}" already present on machine and can be accessed by the pod'
            self._tell(start, NORMAL, "Pulled", present)

    async def _create(self, start: Start) -> str:
        try:
            grant = await self._devices.grant(start.pod, start.container)
            config = await container_config(
                start.document,
                self._document(start),
                settings=ContainerSettings(
                    node=start.node,
                    volumes=start.volumes,
                    pod_directory=self._pods_directory / start.pod.metadata.uid,
                    node_memory=self._node_memory,
                    limits_with_claims=self._limits_with_claims,
                ),
                objects=self._objects,
                cdi_devices=cdi_ids(self._records, start.pod, start.container, extended=self._extended),
                attempt=start.attempt,
                target=self._target(start),
                on_event=lambda reason, message: self._tell(start, WARNING, reason, message),
            )
        except (DevicesUnavailable, TargetUnknown) as error:
            raise self._failed(start, Waiting("CreateContainerConfigError", str(error))) from None
        except ClaimUnknown as error:
            raise self._failed(start, Waiting("CreateContainerConfigError", f"internal error: {error}")) from None
        except (ConfigUnavailable, MountFailed, VolumeRefused, RuntimeRefusal) as error:
            reason = getattr(error, "reason", "CreateContainerConfigError")
            raise self._failed(start, Waiting(reason, str(error))) from None
        try:
            container_id = await self._runtime.create_container(start.sandbox.id, _with(config, grant))
        except DrakitError as error:
            reason = error.reason if isinstance(error, RuntimeRefusal) else "CreateContainerError"
            raise self._failed(start, Waiting(reason, str(error))) from None
        self._tell(start, NORMAL, "Created", "Container created")
        return container_id

    def _target(self, start: Start) -> str:
        """The id of the container whose processes an ephemeral container is to see; empty for none."""
        name = self._document(start).get("targetContainerName")
        target = start.view.latest(name) if name else None
        if name and target is None:
            raise TargetUnknown(f"unable to find target container {name}")
        return "" if target is None else target.id

    async def _post_start(self, start: Start, container_id: str) -> None:
        target = HandlerTarget(container_id, self._document(start), start.sandbox.ip)
        try:
            await run_post_start(target, runner=self._runner)
        except HookFailed as error:
            self._tell(start, WARNING, "FailedPostStartHook", str(error))
            await self._runtime.stop_container(container_id, grace=LEAST_GRACE)
            raise StartFailed(Waiting("PostStartHookError", str(error))) from None

    def _failed(self, start: Start, waiting: Waiting) -> StartFailed:
        self._tell(start, WARNING, "Failed", f"Error: {waiting.message}")
        return StartFailed(waiting)

    def _tell(self, start: Start, type_: str, reason: str, message: str) -> None:
        pod = identity(start.document)
        name = start.container.name
        self._events.about_pod(pod, type_, reason, message, container=name, field=field_of(start.document, name))

    def _document(self, start: Start) -> Document:
        found = container_named(start.document, start.container.name)
        if found is None:
            raise LookupError(f"pod {start.pod.metadata.name} has no container {start.container.name}")
        return found


def _with(config: ContainerConfig, grant: DeviceGrant) -> ContainerConfig:
    return replace(
        config,
        env={**grant.env, **config.env},
        mounts=[*config.mounts, *grant.mounts],
        cdi_devices=(*config.cdi_devices, *grant.cdi_ids),
    )
