"""The status of each container of a pod.

In:  what the runtime has, what was last written, why a container that should run does not.
Out: container statuses as they go to the server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from drakit.api import Container, Pod, is_sidecar
from drakit.api.objects.plain import Plain
from drakit.api.text.times import format_time
from drakit.nodeagent.claims.devices import uses
from drakit.nodeagent.claims.records import ClaimRecords
from drakit.nodeagent.pods.runtimeview import RuntimeView
from drakit.nodeagent.runtimes.contract import ContainerInfo, ContainerState

Document = Mapping[str, Any]
_LOST = "ContainerStatusUnknown"
_LOST_CODE = 137


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why a container does not run, when it should."""

    reason: str
    message: str = ""

    def as_state(self) -> Plain:
        return {"waiting": {"reason": self.reason} | ({"message": self.message} if self.message else {})}


@dataclass(frozen=True, slots=True)
class HealthView:
    """The health of devices, for statuses; `enabled` and `messages` are feature gates."""

    records: ClaimRecords
    health: Callable[[str, str, str], tuple[str, str]]
    enabled: bool = True
    messages: bool = True


@dataclass(frozen=True, slots=True)
class ContainerFacts:
    """What is known of a pod's containers beside its spec."""

    runtime_name: str
    view: RuntimeView
    waiting: Mapping[str, Waiting] = field(default_factory=dict)
    cause: str = ""
    """Why the pod has not come as far as its containers; shown with each that waits."""
    unready: frozenset[str] = frozenset()
    """Running, and its readiness probe says no."""
    unstarted: frozenset[str] = frozenset()
    """Running, and its startup probe has not succeeded yet."""


def container_statuses(pod: Pod, document: Document, facts: ContainerFacts, health: HealthView) -> list[Plain]:
    """Sorted by name, as a kubelet writes them."""
    old = _by_name(document, "containerStatuses")
    made = [_status(pod, each, old.get(each.name), facts) for each in pod.spec.containers]
    for status, container in zip(made, pod.spec.containers, strict=True):
        if shown := list(_health(pod, container, health)):
            status["allocatedResourcesStatus"] = shown
    return sorted(made, key=lambda status: status["name"])


def init_container_statuses(pod: Pod, document: Document, facts: ContainerFacts) -> list[Plain]:
    """In the order of the spec."""
    old = _by_name(document, "initContainerStatuses")
    return [_status(pod, each, old.get(each.name), facts, init=True) for each in pod.spec.init_containers]


def ephemeral_container_statuses(pod: Pod, document: Document, facts: ContainerFacts) -> list[Plain]:
    """In the order of the spec. Ephemeral containers have no readiness."""
    old = _by_name(document, "ephemeralContainerStatuses")
    made = [_status(pod, each, old.get(each.name), facts) for each in pod.spec.ephemeral_containers]
    return [{**each, "ready": False} for each in made]


def _by_name(document: Document, key: str) -> dict[str, Document]:
    return {status["name"]: status for status in (document.get("status") or {}).get(key) or ()}


def _status(
    pod: Pod, container: Container, old: Document | None, facts: ContainerFacts, *, init: bool = False
) -> Plain:
    attempts = facts.view.attempts(container.name)
    status = _known(container, attempts, old, facts, init) if attempts else _unknown(pod, container, old, facts)
    waiting = facts.waiting.get(container.name)
    if waiting is not None and "running" not in status["state"]:
        if "terminated" in status["state"]:
            status["lastState"] = status["state"]
        status |= {"state": waiting.as_state(), "ready": False, "started": False}
    return status


def _unknown(pod: Pod, container: Container, old: Document | None, facts: ContainerFacts) -> Plain:
    """The runtime has no such container: it was not made yet, or it was lost (a reboot)."""
    reason = "PodInitializing" if pod.spec.init_containers else "ContainerCreating"
    status: Plain = {
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "ready": False,
        "started": False,
        "restartCount": old["restartCount"] if old else 0,
        "state": Waiting(reason, facts.cause).as_state(),
        "lastState": dict(old.get("lastState") or {}) if old else {},
    }
    if old and "running" in (old.get("state") or {}):
        status["restartCount"] += 1
        status["lastState"] = {"terminated": lost("deleted", used_to_be_running=True)}
    elif old and "terminated" in (old.get("state") or {}):
        # It ended, and the runtime has dropped it since.
        status |= {"state": old["state"], "ready": old["ready"], "containerID": old.get("containerID", "")}
    return status


def lost(when: str, *, used_to_be_running: bool = False) -> Plain:
    message = f"The container could not be located when the pod was {when}"
    if used_to_be_running:
        message += ".  The container used to be Running"
    return {"exitCode": _LOST_CODE, "reason": _LOST, "message": message, "startedAt": None, "finishedAt": None}


def _known(
    container: Container, attempts: list[ContainerInfo], old: Document | None, facts: ContainerFacts, init: bool
) -> Plain:
    latest = attempts[0]
    running = latest.state is ContainerState.RUNNING
    started = running and container.name not in facts.unstarted
    status: Plain = {
        "name": container.name,
        "image": latest.image or container.image,
        "imageID": latest.image_ref,
        "containerID": f"{facts.runtime_name}://{latest.id}",
        "ready": _is_ready(container, latest, started, facts, init),
        "started": started,
        "restartCount": latest.attempt,
        "state": _state(latest, facts),
        "lastState": _last_state(attempts, old, facts),
    }
    if requests := {name: str(amount) for name, amount in container.resources.requests.items()}:
        status["allocatedResources"] = requests
    return status


def _is_ready(container: Container, info: ContainerInfo, started: bool, facts: ContainerFacts, init: bool) -> bool:
    if init and not is_sidecar(container):
        return info.state is ContainerState.EXITED and info.exit_code == 0
    return started and container.name not in facts.unready


def _state(info: ContainerInfo, facts: ContainerFacts) -> Plain:
    if info.state is ContainerState.CREATED:
        return Waiting("ContainerCreating").as_state()
    if info.state is ContainerState.RUNNING:
        return {"running": {"startedAt": _time(info.started)}}
    return {"terminated": _terminated(info, facts)}


def _terminated(info: ContainerInfo, facts: ContainerFacts) -> Plain:
    reason = info.reason or ("Completed" if info.exit_code == 0 else "Error")
    ended: Plain = {"exitCode": info.exit_code, "reason": reason}
    if info.message:
        ended["message"] = info.message
    return ended | {
        "startedAt": _time(info.started),
        "finishedAt": _time(info.finished),
        "containerID": f"{facts.runtime_name}://{info.id}",
    }


def _last_state(attempts: list[ContainerInfo], old: Document | None, facts: ContainerFacts) -> Plain:
    for earlier in attempts[1:]:
        if earlier.state is ContainerState.EXITED:
            return {"terminated": _terminated(earlier, facts)}
    return dict(old.get("lastState") or {}) if old else {}


def _time(moment: datetime | None) -> str | None:
    return format_time(moment) if moment is not None else None


def _health(pod: Pod, container: Container, health: HealthView) -> Iterator[Plain]:
    if not health.enabled:
        return
    for use in uses(pod, container, extended=False):
        record = health.records.find(pod.metadata.namespace, use.claim)
        if record is None:
            continue
        shown: dict[str, Plain] = {}
        for driver, device in use.devices(record):
            state, message = health.health(driver, device.pool, device.device)
            resource = device.cdi_ids[0] if device.cdi_ids else f"{driver}/{device.pool}/{device.device}"
            told = {"message": message} if message and health.messages else {}
            # Several devices may share a CDI id; the first of them speaks for it.
            shown.setdefault(resource, {"resourceID": resource, "health": state} | told)
        if shown:
            name = f"claim:{use.entry}/{use.request}" if use.request else f"claim:{use.entry}"
            yield {"name": name, "resources": list(shown.values())}
