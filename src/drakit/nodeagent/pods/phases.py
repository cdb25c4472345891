"""The phase and the conditions of a pod, from the states of its containers.

In:  a pod's spec and container statuses as they go to the server.
Out: phase; conditions, in the kubelet's words and order. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from drakit.api import Container, Pod, is_sidecar

PENDING, RUNNING, SUCCEEDED, FAILED = "Pending", "Running", "Succeeded", "Failed"
TERMINAL = (SUCCEEDED, FAILED)
Part = Mapping[str, Any]
"""The status of one container, as plain data."""


def phase_of(pod: Pod, init: Sequence[Part], containers: Sequence[Part], *, ended: bool = False) -> str:
    """`ended`: nothing of the pod runs or will run any more, whatever its restart policy says."""
    found = {status["name"]: status for status in init}
    pending = failed = False
    for container in pod.spec.init_containers:
        initializing, broken = _init_progress(container, found.get(container.name))
        pending, failed = pending or initializing, failed or broken
    if failed and pod.spec.restart_policy == "Never":
        return FAILED
    counts = _count(pod, containers)
    if pending or counts["waiting"]:
        return PENDING
    if counts["running"]:
        return RUNNING
    if not counts["stopped"]:
        return PENDING
    return _stopped(pod.spec.restart_policy, all_good=counts["stopped"] == counts["succeeded"], ended=ended)


def _stopped(policy: str, *, all_good: bool, ended: bool) -> str:
    if ended:
        return SUCCEEDED if all_good else FAILED
    if policy == "Always":
        return RUNNING
    if all_good:
        return SUCCEEDED
    return FAILED if policy == "Never" else RUNNING


def _init_progress(container: Container, status: Part | None) -> tuple[bool, bool]:
    """Whether an init container still keeps the pod from starting, and whether it has failed."""
    if status is None:
        return True, False
    state, last = status["state"], status.get("lastState") or {}
    if is_sidecar(container):
        waits = "waiting" in state and "terminated" not in last
        return waits or ("running" in state and not status.get("started")), False
    ended = state.get("terminated") or ("waiting" in state and last.get("terminated")) or None
    if ended is None:
        return True, False
    return bool("waiting" in state and ended["exitCode"] == 0), ended["exitCode"] != 0


def _count(pod: Pod, containers: Sequence[Part]) -> dict[str, int]:
    counts = dict.fromkeys(("waiting", "running", "stopped", "succeeded"), 0)
    found = {status["name"]: status for status in containers}
    for container in pod.spec.containers:
        status = found.get(container.name)
        state = status["state"] if status is not None else {}
        if "running" in state:
            counts["running"] += 1
        elif "terminated" in state:
            counts["stopped"] += 1
            counts["succeeded"] += state["terminated"]["exitCode"] == 0
        elif status is not None and (status.get("lastState") or {}).get("terminated"):
            counts["stopped"] += 1
        else:
            counts["waiting"] += 1
    return counts


def conditions_of(
    pod: Pod, phase: str, init: Sequence[Part], containers: Sequence[Part], *, sandbox_ready: bool
) -> list[dict[str, Any]]:
    """Without times; in the order in which a kubelet writes them."""
    ready = _containers_ready(pod, phase, init, containers)
    return [
        {"type": "PodReadyToStartContainers", "status": "True" if sandbox_ready else "False"},
        {"type": "Initialized", **_initialized(pod, phase, init, containers)},
        {"type": "Ready", **ready},
        {"type": "ContainersReady", **ready},
        {"type": "PodScheduled", "status": "True"},
    ]


def _initialized(pod: Pod, phase: str, init: Sequence[Part], containers: Sequence[Part]) -> dict[str, str]:
    if phase == SUCCEEDED:
        return {"status": "True", "reason": "PodCompleted"}
    if any("running" in status["state"] for status in containers):
        return {"status": "True"}
    found = {status["name"]: status for status in init}
    incomplete = [each.name for each in pod.spec.init_containers if not _is_initialized(each, found.get(each.name))]
    if not incomplete:
        return {"status": "True"}
    message = f"containers with incomplete status: [{' '.join(incomplete)}]"
    return {"status": "False", "reason": "ContainersNotInitialized", "message": message}


def _is_initialized(container: Container, status: Part | None) -> bool:
    if status is None:
        return False
    return bool(status.get("started")) if is_sidecar(container) else bool(status["ready"])


def _containers_ready(pod: Pod, phase: str, init: Sequence[Part], containers: Sequence[Part]) -> dict[str, str]:
    if phase == SUCCEEDED:
        return {"status": "False", "reason": "PodCompleted"}
    if phase == FAILED:
        return {"status": "False", "reason": "PodFailed"}
    found = {status["name"]: status for status in (*init, *containers)}
    sidecars = [each for each in pod.spec.init_containers if is_sidecar(each)]
    unready = [each.name for each in (*sidecars, *pod.spec.containers) if not found.get(each.name, {}).get("ready")]
    if not unready:
        return {"status": "True"}
    message = f"containers with unready status: [{' '.join(unready)}]"
    return {"status": "False", "reason": "ContainersNotReady", "message": message}


def require_gates(document: Part, conditions: list[dict[str, Any]]) -> None:
    """A pod with readiness gates is Ready only when somebody has made each of them true."""
    gates = [each["conditionType"] for each in (document.get("spec") or {}).get("readinessGates") or ()]
    ready = next(each for each in conditions if each["type"] == "Ready")
    if not gates or ready["status"] != "True":
        return
    held = {each["type"]: each["status"] for each in (document.get("status") or {}).get("conditions") or ()}
    missing = [_gate_problem(gate, held.get(gate)) for gate in gates if held.get(gate) != "True"]
    if missing:
        ready |= {"status": "False", "reason": "ReadinessGatesNotReady", "message": ", ".join(missing)}


def _gate_problem(gate: str, status: str | None) -> str:
    about = f'corresponding condition of pod readiness gate "{gate}"'
    return (
        f"{about} does not exist."
        if status is None
        else f'the status of pod readiness gate "{gate}" is not "True", but {status}'
    )
