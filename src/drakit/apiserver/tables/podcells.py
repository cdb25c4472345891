"""The cells of a pod: how `kubectl get pods` summarizes its containers."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from drakit.api.objects.plain import Plain
from drakit.apiserver.tables.ages import age

_NONE = "<none>"
_TERMINAL = ("Succeeded", "Failed")


class Summary(NamedTuple):
    reason: str
    ready: int = 0
    restarts: int = 0
    restarted: str = ""
    """When a container was restarted last."""


def pod_cells(pod: Plain, now: datetime) -> list[Any]:
    spec, status, metadata = pod.get("spec") or {}, pod.get("status") or {}, pod.get("metadata") or {}
    total = len(spec.get("containers") or ()) + sum(map(_restartable, spec.get("initContainers") or ()))
    summary = _summarize(spec, status, _reason(status))
    restarts = str(summary.restarts)
    if summary.restarts and summary.restarted:
        restarts += f" ({age(summary.restarted, now)} ago)"
    return [
        metadata.get("name", ""),
        f"{summary.ready}/{total}",
        _leaving(metadata, status) or summary.reason,
        restarts,
        age(metadata.get("creationTimestamp"), now),
        next((each.get("ip") for each in status.get("podIPs") or ()), None) or _NONE,
        spec.get("nodeName") or _NONE,
        status.get("nominatedNodeName") or _NONE,
        _readiness_gates(spec, status),
    ]


def pod_conditions(pod: Plain) -> list[dict[str, Any]]:
    """The conditions of the row: `Completed` for a pod that has ended."""
    phase = (pod.get("status") or {}).get("phase")
    if phase not in _TERMINAL:
        return []
    message = "The pod has completed successfully." if phase == "Succeeded" else "The pod failed."
    return [{"type": "Completed", "status": "True", "reason": phase, "message": message}]


def _reason(status: Plain) -> str:
    gated = any(
        each.get("type") == "PodScheduled" and each.get("reason") == "SchedulingGated"
        for each in status.get("conditions") or ()
    )
    return "SchedulingGated" if gated else status.get("reason") or status.get("phase") or ""


def _leaving(metadata: Plain, status: Plain) -> str:
    if not metadata.get("deletionTimestamp"):
        return ""
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return "" if status.get("phase") in _TERMINAL else "Terminating"


def _restartable(container: Plain) -> bool:
    return container.get("restartPolicy") == "Always"


def _true(status: Plain, wanted: str) -> bool:
    conditions: list[Plain] = status.get("conditions") or []
    found = next((each for each in conditions if each.get("type") == wanted), None)
    return found is not None and found.get("status") == "True"


def _summarize(spec: Plain, status: Plain, reason: str) -> Summary:
    sidecars = {each.get("name") for each in spec.get("initContainers") or () if _restartable(each)}
    initial, finished = _initial(spec, status, reason, sidecars)
    if not finished and not _true(status, "Initialized"):
        return initial
    mine = [each for each in _visited(status, sidecars) if each.get("name") in sidecars]
    return _running(status, initial.reason, initial.ready, mine)


def _visited(status: Plain, sidecars: set[Any]) -> list[Plain]:
    """Init containers up to the first that is not done."""
    visited: list[Plain] = []
    for each in status.get("initContainerStatuses") or ():
        visited.append(each)
        if not _done(each, sidecars):
            break
    return visited


def _done(container: Plain, sidecars: set[Any]) -> bool:
    terminated = (container.get("state") or {}).get("terminated")
    if terminated is not None and not terminated.get("exitCode"):
        return True
    return container.get("name") in sidecars and bool(container.get("started"))


def _initial(spec: Plain, status: Plain, reason: str, sidecars: set[Any]) -> tuple[Summary, bool]:
    """The summary of the init containers, and whether all are done."""
    visited = _visited(status, sidecars)
    ready = sum(
        bool(each.get("ready") and each.get("name") in sidecars and each.get("started"))
        for each in visited
        if _done(each, sidecars) and (each.get("state") or {}).get("terminated") is None
    )
    restarts, restarted = _restarts(visited)
    finished = all(_done(each, sidecars) for each in visited)
    if not finished:
        total = len(spec.get("initContainers") or ())
        reason = "Init:" + _why_initializing(visited[-1], len(visited) - 1, total)
    return Summary(reason, ready, restarts, restarted), finished


def _why_initializing(container: Plain, index: int, total: int) -> str:
    state = container.get("state") or {}
    if state.get("terminated") is not None:
        return _why_terminated(state["terminated"])
    waiting = (state.get("waiting") or {}).get("reason")
    return waiting if waiting and waiting != "PodInitializing" else f"{index}/{total}"


def _why_terminated(terminated: Plain) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _restarts(containers: list[Plain]) -> tuple[int, str]:
    finished = [((each.get("lastState") or {}).get("terminated") or {}).get("finishedAt") or "" for each in containers]
    return sum(each.get("restartCount", 0) for each in containers), max(finished, default="")


def _running(status: Plain, reason: str, ready: int, sidecars: list[Plain]) -> Summary:
    containers = list(status.get("containerStatuses") or ())
    running, failed = False, ""
    for each in reversed(containers):
        state = each.get("state") or {}
        waiting, terminated = (state.get("waiting") or {}).get("reason"), state.get("terminated")
        if waiting:
            reason = waiting
        elif terminated is not None:
            reason = _why_terminated(terminated)
            failed = reason if terminated.get("exitCode") else failed
        elif each.get("ready") and state.get("running") is not None:
            running = True
            ready += 1
    if reason == "Completed":
        reason = _after_completion(status, running=running, failed=failed)
    return Summary(reason, ready, *_restarts(sidecars + containers))


def _after_completion(status: Plain, *, running: bool, failed: str) -> str:
    if running and _true(status, "Ready"):
        return "Running"
    return failed or ("NotReady" if running else "Completed")


def _readiness_gates(spec: Plain, status: Plain) -> str:
    gates = spec.get("readinessGates") or ()
    if not gates:
        return _NONE
    return f"{sum(_true(status, each.get('conditionType', '')) for each in gates)}/{len(gates)}"
