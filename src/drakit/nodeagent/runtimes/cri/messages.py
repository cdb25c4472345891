"""Convert between the runtime contract's types and CRI messages."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from drakit.nodeagent.runtimes.contract import (
    BindMount,
    ContainerConfig,
    ContainerInfo,
    ContainerLimits,
    ContainerState,
    PodIdentity,
    SandboxConfig,
    SandboxInfo,
    SandboxState,
)
from drakit.nodeagent.runtimes.lastwords import last_words
from drakit.pluginapi import cri_v1_pb2 as cri

OURS = {"drakit.dev/managed": "true"}
"""Labels on everything that drakit creates. A kubelet may use the same runtime; its pods are left alone."""
POD_NAME, POD_NAMESPACE, POD_UID = "io.kubernetes.pod.name", "io.kubernetes.pod.namespace", "io.kubernetes.pod.uid"
LOG_DIRECTORY, HOST_NETWORK, TTY = "drakit.dev/log-directory", "drakit.dev/host-network", "drakit.dev/tty"
TERMINATION_FILE, LOG_ON_ERROR = "drakit.dev/termination-file", "drakit.dev/log-on-error"
"""Annotations for what CRI does not return in a status, and what an agent needs after its restart."""
CONTAINER_NAME = "io.kubernetes.container.name"

_PROPAGATION = {
    "": cri.PROPAGATION_PRIVATE,
    "HostToContainer": cri.PROPAGATION_HOST_TO_CONTAINER,
    "Bidirectional": cri.PROPAGATION_BIDIRECTIONAL,
}
_STATES = {
    cri.CONTAINER_CREATED: ContainerState.CREATED,
    cri.CONTAINER_RUNNING: ContainerState.RUNNING,
    cri.CONTAINER_EXITED: ContainerState.EXITED,
}


def sandbox_message(sandbox: SandboxConfig) -> cri.PodSandboxConfig:
    linux = linux_sandbox(host_network=sandbox.host_network)
    linux.resources.CopyFrom(_resources(sandbox.limits))
    told = {LOG_DIRECTORY: sandbox.log_directory, HOST_NETWORK: str(sandbox.host_network).lower()}
    return cri.PodSandboxConfig(
        metadata=cri.PodSandboxMetadata(
            name=sandbox.pod.name, uid=sandbox.pod.uid, namespace=sandbox.pod.namespace, attempt=sandbox.attempt
        ),
        # A pod with hostNetwork has the hostname of the node.
        hostname="" if sandbox.host_network else sandbox.hostname,
        log_directory=sandbox.log_directory,
        # Ours come last: a label of the pod must not be able to hide the pod from us.
        labels={**sandbox.labels, **_pod_labels(sandbox.pod)},
        annotations={**sandbox.annotations, **told},
        linux=linux,
    )


def linux_sandbox(*, host_network: bool) -> cri.LinuxPodSandboxConfig:
    network = cri.NODE if host_network else cri.POD
    options = cri.NamespaceOption(network=network, pid=cri.CONTAINER, ipc=cri.POD)
    return cri.LinuxPodSandboxConfig(security_context=cri.LinuxSandboxSecurityContext(namespace_options=options))


def container_message(config: ContainerConfig, *, host_network: bool) -> cri.ContainerConfig:
    return cri.ContainerConfig(
        metadata=cri.ContainerMetadata(name=config.name, attempt=config.attempt),
        image=cri.ImageSpec(image=config.image, user_specified_image=config.image),
        command=list(config.command),
        args=list(config.args),
        working_dir=config.working_dir,
        envs=[cri.KeyValue(key=name, value=value.encode()) for name, value in config.env.items()],
        mounts=[_mount(mount) for mount in config.mounts],
        labels={**config.labels, **_pod_labels(config.pod), CONTAINER_NAME: config.name},
        annotations={**config.annotations, **_told(config)},
        log_path=config.log_path,
        stdin=config.stdin,
        stdin_once=config.stdin_once,
        tty=config.tty,
        linux=cri.LinuxContainerConfig(
            resources=_resources(config.limits), security_context=_security(config, host_network)
        ),
        CDI_devices=[cri.CDIDevice(name=device) for device in config.cdi_devices],
    )


def sandbox_info(sandbox: cri.PodSandbox, ip: str) -> SandboxInfo:
    data = sandbox.metadata
    return SandboxInfo(
        id=sandbox.id,
        pod=PodIdentity(uid=data.uid, namespace=data.namespace, name=data.name),
        attempt=data.attempt,
        state=SandboxState.READY if sandbox.state == cri.SANDBOX_READY else SandboxState.NOT_READY,
        created=_time(sandbox.created_at) or datetime.fromtimestamp(0, UTC),
        ip=ip,
        labels=dict(sandbox.labels),
        annotations=dict(sandbox.annotations),
    )


def container_info(container: cri.Container, status: cri.ContainerStatus) -> ContainerInfo:
    """CONTAINER_UNKNOWN counts as exited, with the reason ContainerStatusUnknown."""
    state = _STATES.get(status.state, ContainerState.EXITED)
    labels = container.labels
    return ContainerInfo(
        id=container.id,
        sandbox_id=container.pod_sandbox_id,
        pod=PodIdentity(uid=labels[POD_UID], namespace=labels[POD_NAMESPACE], name=labels[POD_NAME]),
        name=container.metadata.name,
        attempt=container.metadata.attempt,
        state=state,
        created=_time(status.created_at) or datetime.fromtimestamp(0, UTC),
        started=_time(status.started_at),
        finished=_time(status.finished_at) if state is ContainerState.EXITED else None,
        exit_code=status.exit_code,
        reason=_reason(status) if state is ContainerState.EXITED else "",
        message=_message(status),
        log_path=status.log_path,
        image=container.image.user_specified_image or container.image.image,
        image_ref=status.image_ref or container.image_ref,
        labels=dict(labels),
        annotations=dict(container.annotations),
    )


def _told(config: ContainerConfig) -> dict[str, str]:
    return {
        TTY: str(config.tty).lower(),
        TERMINATION_FILE: config.termination_file,
        LOG_ON_ERROR: str(config.log_on_error).lower(),
    }


def _message(status: cri.ContainerStatus) -> str:
    """The message of the runtime if it has one, otherwise the termination message of the container."""
    if status.message or status.state != cri.CONTAINER_EXITED:
        return status.message
    return last_words(
        status.annotations.get(TERMINATION_FILE, ""),
        exit_code=status.exit_code,
        log_path=status.log_path,
        log_on_error=status.annotations.get(LOG_ON_ERROR) == "true",
    )


def whole_seconds(seconds: float) -> int:
    # CRI takes whole seconds, and 0 means at once: half a second of grace must not become none.
    return max(math.ceil(seconds), 0)


def _reason(status: cri.ContainerStatus) -> str:
    if status.state == cri.CONTAINER_UNKNOWN:
        return "ContainerStatusUnknown"
    return status.reason or ("Completed" if status.exit_code == 0 else "Error")


def _pod_labels(pod: PodIdentity) -> dict[str, str]:
    return {**OURS, POD_NAME: pod.name, POD_NAMESPACE: pod.namespace, POD_UID: pod.uid}


def _mount(mount: BindMount) -> cri.Mount:
    return cri.Mount(
        container_path=mount.container_path,
        host_path=mount.host_path,
        readonly=mount.read_only,
        propagation=_PROPAGATION[mount.propagation],
    )


def _resources(limits: ContainerLimits) -> cri.LinuxContainerResources:
    return cri.LinuxContainerResources(
        # A period without a quota limits nothing: leave it to the runtime.
        cpu_period=limits.cpu_period if limits.cpu_quota else 0,
        cpu_quota=limits.cpu_quota,
        cpu_shares=limits.cpu_shares,
        memory_limit_in_bytes=limits.memory_bytes,
        oom_score_adj=limits.oom_score_adj,
    )


def _security(config: ContainerConfig, host_network: bool) -> cri.LinuxContainerSecurityContext:
    network = cri.NODE if host_network else cri.POD
    return cri.LinuxContainerSecurityContext(
        privileged=config.privileged,
        namespace_options=cri.NamespaceOption(
            network=network, pid=cri.TARGET if config.target else cri.CONTAINER, ipc=cri.POD, target_id=config.target
        ),
        run_as_user=None if config.run_as_user is None else cri.Int64Value(value=config.run_as_user),
        run_as_group=None if config.run_as_group is None else cri.Int64Value(value=config.run_as_group),
        readonly_rootfs=config.read_only_root,
    )


def _time(nanos: int) -> datetime | None:
    return datetime.fromtimestamp(nanos / 1e9, UTC) if nanos > 0 else None
