"""Which container a request means: pod and container by name, the attempt that has the logs, the one that runs.

In:  names from the path of a request; pods as the agent knows them, containers as the runtime does.
Out: the runtime's containers and sandboxes, or why there is none, in the kubelet's words.

NodeRequestError    the answer is this HTTP code and text
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from drakit.nodeagent.pods.feed import PodFeed
from drakit.nodeagent.runtimes.contract import ContainerInfo, ContainerState, Runtime, SandboxInfo, SandboxState

PodDocument = Mapping[str, Any]

_WAITING = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


class PodSource(Protocol):
    """The pods of this node, each a whole document with the status that the agent has for it."""

    def find(self, namespace: str, name: str) -> PodDocument | None: ...

    def all(self) -> Iterable[PodDocument]: ...


class CachedPods:
    """The pods of an informer that follows this node's."""

    def __init__(self, feed: PodFeed) -> None:
        self._feed = feed

    def find(self, namespace: str, name: str) -> PodDocument | None:
        found = self._feed.cache.named(name, namespace)
        return found.document if found is not None else None

    def all(self) -> Iterable[PodDocument]:
        return [pod.document for pod in self._feed.cache.all()]


class NodeRequestError(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def find_pod(pods: PodSource, namespace: str, name: str, uid: str = "") -> PodDocument:
    pod = pods.find(namespace, name)
    if pod is None:
        raise NodeRequestError(404, f'pod "{name}" does not exist')
    if uid and uid != pod["metadata"].get("uid"):
        raise NodeRequestError(404, f'pod "{name}" does not exist: another one has its name')
    return pod


def require_container(pod: PodDocument, name: str) -> None:
    spec = pod.get("spec") or {}
    listed = [*spec.get("initContainers", ()), *spec.get("containers", ()), *spec.get("ephemeralContainers", ())]
    if not any(container.get("name") == name for container in listed):
        raise NodeRequestError(404, f'container "{name}" not found in pod "{pod["metadata"]["name"]}"')


async def logged_container(runtime: Runtime, pod: PodDocument, name: str, *, previous: bool) -> ContainerInfo:
    """The attempt whose log is meant: the latest one that was started, or the one that the status tells as the last.

    While a container waits to be restarted the two are the same, as with a kubelet.
    """
    require_container(pod, name)
    attempts = await _attempts(runtime, pod, name)
    pod_name = pod["metadata"]["name"]
    if previous:
        told = _last_terminated(pod, name)
        # The status may not know of a restart yet that the runtime has made.
        found = [each for each in attempts if each.id == told] or attempts[:-1]
        if not found:
            raise NodeRequestError(400, f'previous terminated container "{name}" in pod "{pod_name}" not found')
        return found[-1]
    if not attempts:
        raise NodeRequestError(400, _why_no_logs(pod, name))
    return attempts[-1]


async def running_container(runtime: Runtime, pod: PodDocument, name: str) -> ContainerInfo:
    require_container(pod, name)
    attempts = await _attempts(runtime, pod, name)
    if not attempts or attempts[-1].state is not ContainerState.RUNNING:
        raise NodeRequestError(500, f'container not found ("{name}")')
    return attempts[-1]


async def ready_sandbox(runtime: Runtime, pod: PodDocument) -> SandboxInfo:
    uid = pod["metadata"].get("uid")
    found = [each for each in await runtime.sandboxes() if each.pod.uid == uid and each.state is SandboxState.READY]
    if not found:
        raise NodeRequestError(500, f'sandbox of pod "{pod["metadata"]["name"]}" is not running')
    return max(found, key=lambda sandbox: sandbox.attempt)


async def is_running(runtime: Runtime, container_id: str) -> bool:
    return any(each.id == container_id and each.state is ContainerState.RUNNING for each in await runtime.containers())


async def _attempts(runtime: Runtime, pod: PodDocument, name: str) -> list[ContainerInfo]:
    """Those that were started, the oldest first."""
    uid = pod["metadata"].get("uid")
    found = [
        each
        for each in await runtime.containers()
        if each.pod.uid == uid and each.name == name and each.state is not ContainerState.CREATED
    ]
    return sorted(found, key=lambda container: (container.created, container.attempt))


def _container_status(pod: PodDocument, name: str) -> Mapping[str, Any] | None:
    status = pod.get("status") or {}
    listed = [
        *status.get("containerStatuses", ()),
        *status.get("initContainerStatuses", ()),
        *status.get("ephemeralContainerStatuses", ()),
    ]
    return next((each for each in listed if each.get("name") == name), None)


def _last_terminated(pod: PodDocument, name: str) -> str:
    """The runtime's id of `lastState`, which stands behind its name: `process://4d3e`."""
    status = _container_status(pod, name) or {}
    terminated = (status.get("lastState") or {}).get("terminated") or {}
    return str(terminated.get("containerID") or "").partition("://")[2]


def _why_no_logs(pod: PodDocument, name: str) -> str:
    about = f'container "{name}" in pod "{pod["metadata"]["name"]}"'
    status = _container_status(pod, name)
    if status is None:
        return f"{about} is not available"
    state = status.get("state") or {}
    if "terminated" in state:
        return f"{about} is terminated"
    reason = (state.get("waiting") or {}).get("reason", "")
    return f"{about} is waiting to start: {_WAITING.get(reason, reason)}" if reason else f"{about} is not available"
