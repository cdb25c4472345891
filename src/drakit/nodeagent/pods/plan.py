"""What to do next for a pod that should run.

In:  its spec, what the runtime has.
Out: a plan: a sandbox first, then init containers one after the other, then all others. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from drakit.api import Container, Pod, is_sidecar
from drakit.nodeagent.pods.runtimeview import RuntimeView
from drakit.nodeagent.runtimes.contract import ContainerInfo, ContainerState


@dataclass(slots=True)
class PodPlan:
    """`sandbox` is the attempt of a sandbox to make; then nothing else is to be done before."""

    sandbox: int | None = None
    start: list[Container] = field(default_factory=list)


def plan(pod: Pod, view: RuntimeView, *, is_started: Callable[[str], bool]) -> PodPlan:
    """`is_started`: whether a running container has passed its startup probe."""
    if view.ready_sandbox is None:
        latest = view.latest_sandbox
        return PodPlan(sandbox=0 if latest is None else latest.attempt + 1)
    # Somebody wants to look inside: not even an init container that hangs may hold that up. They never run twice.
    steps = PodPlan(start=[each for each in pod.spec.ephemeral_containers if _is_new(each, view)])
    for container in pod.spec.init_containers:
        if not _pass(pod, container, view, steps, is_started):
            return steps
    steps.start += [each for each in pod.spec.containers if _should_start(pod, each, view)]
    return steps


def _pass(pod: Pod, container: Container, view: RuntimeView, steps: PodPlan, is_started: Callable[[str], bool]) -> bool:
    """Whether this init container is done, or as a sidecar has started, so that the next one may start."""
    latest = _in_sandbox(view, container.name)
    sidecar = is_sidecar(container)
    if _is_beyond(pod, view) and not sidecar:
        return True  # it has done its part: the pod went on, whatever the runtime still knows of it
    if latest is None or latest.state is ContainerState.CREATED:
        steps.start.append(container)
        return False
    if latest.state is ContainerState.RUNNING:
        return sidecar and is_started(container.name)
    if sidecar or latest.exit_code != 0:
        if sidecar or policy_of(pod, container) != "Never":
            steps.start.append(container)
        return sidecar and _is_beyond(pod, view)
    return True


def _in_sandbox(view: RuntimeView, name: str) -> ContainerInfo | None:
    """The newest run in the current sandbox. In a new sandbox, init containers run again."""
    sandbox = view.ready_sandbox
    return next((c for c in view.attempts(name) if sandbox is not None and c.sandbox_id == sandbox.id), None)


def _is_beyond(pod: Pod, view: RuntimeView) -> bool:
    """Whether a regular container was started in the current sandbox."""
    sandbox = view.ready_sandbox
    names = {each.name for each in pod.spec.containers}
    return sandbox is not None and any(
        each.name in names and each.sandbox_id == sandbox.id and each.state is not ContainerState.CREATED
        for each in view.containers
    )


def _is_new(container: Container, view: RuntimeView) -> bool:
    latest = view.latest(container.name)
    return latest is None or latest.state is ContainerState.CREATED


def _should_start(pod: Pod, container: Container, view: RuntimeView) -> bool:
    latest = view.latest(container.name)
    if latest is None or latest.state is ContainerState.CREATED:
        return True
    return latest.state is ContainerState.EXITED and restarts(pod, container, latest)


def restarts(pod: Pod, container: Container, ended: ContainerInfo) -> bool:
    """Whether a container that has ended is started again."""
    policy = policy_of(pod, container)
    return policy == "Always" or (policy == "OnFailure" and ended.exit_code != 0)


def policy_of(pod: Pod, container: Container) -> str:
    return container.restart_policy or pod.spec.restart_policy or "Always"


def next_attempt(view: RuntimeView, name: str, known_restarts: int) -> int:
    """The attempt of the next start; `known_restarts` is what the status says, where the runtime has forgotten."""
    latest = view.latest(name)
    return known_restarts if latest is None else latest.attempt + (latest.state is not ContainerState.CREATED)
