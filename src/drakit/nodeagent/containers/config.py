"""From one container of a Pod document to what a runtime is asked to make.

In:  the pod, the container, the volumes that are set up, the CDI ids that its claims brought, the attempt.
Out: a ContainerConfig. Raises ConfigUnavailable (try again) or RuntimeRefusal (tell the pod).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from drakit.nodeagent.containers.documents import NOTHING, Document, all_containers, identity, spec_of
from drakit.nodeagent.containers.environment import environment_of
from drakit.nodeagent.containers.expansion import expand
from drakit.nodeagent.containers.failures import ConfigUnavailable
from drakit.nodeagent.containers.fieldrefs import NodeFacts
from drakit.nodeagent.containers.limits import container_limits
from drakit.nodeagent.containers.mounts import mounts_of
from drakit.nodeagent.containers.sources import ObjectSource
from drakit.nodeagent.runtimes.contract import (
    BindMount,
    ContainerConfig,
    ContainerRole,
    PodIdentity,
    RuntimeRefusal,
)

TERMINATION_LOG = "/dev/termination-log"


@dataclass(frozen=True, slots=True)
class ContainerSettings:
    """What the node adds to every container."""

    node: NodeFacts
    volumes: Mapping[str, Path]
    pod_directory: Path
    """Where the termination messages of the pod's containers are kept."""
    node_memory: int = 0
    limits_with_claims: bool = False
    """drakit's own switch: cgroup limits and OOM score from spec plus claims (KEP-5517's next stage)."""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


async def container_config(
    pod: Document,
    container: Document,
    *,
    settings: ContainerSettings,
    objects: ObjectSource,
    cdi_devices: Sequence[str] = (),
    attempt: int = 0,
    target: str = "",
    on_event: Callable[[str, str], None] = lambda _reason, _message: None,
) -> ContainerConfig:
    """`target` is the id of the container whose processes it shares. `on_event` gets reason and message of what is
    left out without being refused."""
    security = _security(pod, container)
    environment = await environment_of(pod, container, objects=objects, node=settings.node)
    if environment.skipped:
        keys = ", ".join(environment.skipped)
        on_event("InvalidEnvironmentVariableNames", f"Keys [{keys}] were skipped since they are no variable names.")
    env = environment.values
    last_words = _termination_mount(container, settings.pod_directory, attempt)
    limits = container_limits(pod, container, node_memory=settings.node_memory, with_claims=settings.limits_with_claims)
    return ContainerConfig(
        pod=identity(pod),
        name=container["name"],
        attempt=attempt,
        target=target,
        role=role_of(pod, container["name"]),
        image=container.get("image", ""),
        command=[expand(word, env) for word in container.get("command") or ()],
        args=[expand(word, env) for word in container.get("args") or ()],
        working_dir=container.get("workingDir") or "",
        env=env,
        mounts=[
            *mounts_of(container, settings.volumes, env),
            last_words,
        ],
        cdi_devices=tuple(cdi_devices),
        limits=limits,
        log_path=log_path(container["name"], attempt),
        tty=bool(container.get("tty")),
        stdin=bool(container.get("stdin")),
        stdin_once=bool(container.get("stdinOnce")),
        run_as_user=security.get("runAsUser"),
        run_as_group=security.get("runAsGroup"),
        privileged=bool(security.get("privileged")),
        read_only_root=bool(security.get("readOnlyRootFilesystem")),
        termination_file=last_words.host_path,
        log_on_error=container.get("terminationMessagePolicy") == "FallbackToLogsOnError",
        stop_signal=(container.get("lifecycle") or NOTHING).get("stopSignal") or "",
        labels=settings.labels,
        annotations=settings.annotations,
    )


def log_directory(root: Path, pod: PodIdentity) -> Path:
    """As a kubelet names it below /var/log/pods."""
    return root / f"{pod.namespace}_{pod.name}_{pod.uid}"


def drop_logs(root: Path, keep: set[str]) -> None:
    """Remove the log directories of all pods but those, by their uids."""
    for directory in root.iterdir():
        if directory.name.rpartition("_")[2] not in keep:
            shutil.rmtree(directory, ignore_errors=True)


def log_path(container: str, attempt: int) -> str:
    """Within the pod's log directory."""
    return f"{container}/{attempt}.log"


def role_of(pod: Document, name: str) -> ContainerRole:
    return next((role for container, role in all_containers(pod) if container["name"] == name), ContainerRole.MAIN)


def _termination_mount(container: Document, pod_directory: Path, attempt: int) -> BindMount:
    file = _termination_file(pod_directory, container["name"], attempt)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        file.chmod(0o666)  # whatever user the container runs as may leave its last words
    except OSError as error:
        raise ConfigUnavailable(f"the file of the termination message cannot be made: {error}") from None
    return BindMount(str(file), container.get("terminationMessagePath") or TERMINATION_LOG, needed=False)


def _termination_file(pod_directory: Path, container: str, attempt: int) -> Path:
    return pod_directory / "containers" / container / f"termination-{attempt}"


def _security(pod: Document, container: Document) -> Document:
    """The container's own settings over the pod's. Raises RuntimeRefusal for runAsNonRoot without a user."""
    merged = {**(spec_of(pod).get("securityContext") or {}), **(container.get("securityContext") or {})}
    if merged.get("runAsNonRoot") and not merged.get("runAsUser"):
        what = "runAsUser is 0" if merged.get("runAsUser") == 0 else "no runAsUser says which user it is"
        message = f'container "{container["name"]}" has runAsNonRoot and {what}'
        raise RuntimeRefusal(message, reason="CreateContainerConfigError")
    return merged
