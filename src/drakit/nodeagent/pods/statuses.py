"""The whole status of a pod, as it goes to the server.

In:  the pod, its containers' statuses, its sandbox.
Out: a status to merge into the pod's: fields that the agent owns, and no others. Pure.

A terminal phase is not told before everything has been let go: until then the last phase stays, while the conditions
already say how it ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from drakit.api import Pod
from drakit.api.objects.plain import Plain
from drakit.nodeagent.containers.limits import qos_class
from drakit.nodeagent.pods.containerstatuses import (
    ContainerFacts,
    HealthView,
    container_statuses,
    ephemeral_container_statuses,
    init_container_statuses,
    lost,
)
from drakit.nodeagent.pods.phases import FAILED, PENDING, TERMINAL, conditions_of, phase_of, require_gates


@dataclass(frozen=True, slots=True)
class PodStatusFacts:
    containers: ContainerFacts
    health: HealthView
    host_ip: str = ""
    start_time: str = ""
    evicted: bool = False
    """The node ends the pod: it has failed, whatever its containers say."""


@dataclass(frozen=True, slots=True)
class BuiltStatus:
    status: Plain
    phase: str
    """The phase that the containers are in, which may be terminal before `status` says so."""


def build_status(pod: Pod, document: Mapping[str, Any], facts: PodStatusFacts, *, ended: bool = False) -> BuiltStatus:
    """`ended`: all containers are gone for good and claims are unprepared: this is the last status."""
    init = init_container_statuses(pod, document, facts.containers)
    containers = container_statuses(pod, document, facts.containers, facts.health)
    sandbox = facts.containers.view.ready_sandbox
    phase = FAILED if ended and facts.evicted else phase_of(pod, init, containers, ended=ended)
    conditions = conditions_of(pod, phase, init, containers, sandbox_ready=sandbox is not None)
    require_gates(document, conditions)
    status: Plain = {
        "phase": phase if ended else _shown(phase, pod),
        "conditions": conditions,
        "containerStatuses": containers,
        "qosClass": pod.status.qos_class or qos_class(document),
    }
    if init:
        status["initContainerStatuses"] = init
    if ephemeral := ephemeral_container_statuses(pod, document, facts.containers):
        status["ephemeralContainerStatuses"] = ephemeral
    if facts.start_time:
        status["startTime"] = facts.start_time
    if facts.host_ip:
        status |= {"hostIP": facts.host_ip, "hostIPs": [{"ip": facts.host_ip}]}
    ip = sandbox.ip if sandbox is not None else ""
    if ip := ip or (facts.host_ip if sandbox is not None and pod.spec.host_network else ""):
        status |= {"podIP": ip, "podIPs": [{"ip": ip}]}
    if ended:
        _close(pod, status)
    return BuiltStatus(status, phase)


def _shown(phase: str, pod: Pod) -> str:
    """The phase to report before the end: the last one, unless that was terminal."""
    if phase not in TERMINAL:
        return pod.status.phase if pod.status.phase in TERMINAL else phase
    return pod.status.phase or PENDING


def _close(pod: Pod, status: Plain) -> None:
    """Complete the last status: no container waits any more, and the phase is terminal."""
    if _has_initialized(pod, status):
        for each in (*status["containerStatuses"], *status.get("ephemeralContainerStatuses", ())):
            if "terminated" not in each["state"]:
                each["state"] = {"terminated": lost("terminated")}
    if status["phase"] not in TERMINAL:
        status["phase"] = FAILED


def _has_initialized(pod: Pod, status: Plain) -> bool:
    initialized = next(each for each in status["conditions"] if each["type"] == "Initialized")
    return not pod.spec.init_containers or initialized["status"] == "True"


def with_sandbox(status: Plain, *, ip: str) -> Plain:
    """The same status, right after the sandbox was made: nothing runs in it yet, and nothing is waited for."""
    conditions = [
        {**each, "status": "True"} if each["type"] == "PodReadyToStartContainers" else each
        for each in status["conditions"]
    ]
    addresses = {"podIP": ip, "podIPs": [{"ip": ip}]} if ip else {}
    lists: Plain = {
        key: [_without_cause(each) for each in status[key]]
        for key in ("initContainerStatuses", "containerStatuses")
        if key in status
    }
    return {**status, **lists, "conditions": conditions, **addresses}


def _without_cause(status: Plain) -> Plain:
    waiting = status["state"].get("waiting")
    return status if waiting is None else {**status, "state": {"waiting": {"reason": waiting["reason"]}}}


def rejected(pod: Pod, document: Mapping[str, Any], reason: str, message: str, *, start_time: str) -> Plain:
    """A pod that the node does not take: it has failed before anything was done for it."""
    return {
        "phase": FAILED,
        "reason": reason,
        "message": f"Pod was rejected: {message}",
        "qosClass": pod.status.qos_class or qos_class(document),
        "startTime": start_time,
    }
