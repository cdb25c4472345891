"""What a deployment tells of itself: counts, and the conditions `Available` and `Progressing`. Pure.

`kubectl rollout status` reads these. Reasons and messages are upstream's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from drakit.api.text.times import format_time, parse_time
from drakit.controllers.deployments.replicasets import (
    OneDeployment,
    OneSet,
    max_unavailable,
    size_of,
    wanted_replicas,
)

Status = dict[str, Any]
Condition = dict[str, str]

PROGRESSING = "Progressing"
AVAILABLE = "Available"
CREATED = "NewReplicaSetCreated"
FOUND = "FoundNewReplicaSet"
UPDATED = "ReplicaSetUpdated"
COMPLETE = "NewReplicaSetAvailable"
TIMED_OUT = "ProgressDeadlineExceeded"
PAUSED = "DeploymentPaused"
RESUMED = "DeploymentResumed"
_NO_DEADLINE = 2**31 - 1
_COUNTS = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas")


def counts(deployment: OneDeployment, new: OneSet | None, sets: Sequence[OneSet]) -> Status:
    available = sum(each.view.status.available_replicas for each in sets)
    return {
        "observedGeneration": deployment.view.metadata.generation,
        "replicas": sum(each.view.status.replicas for each in sets),
        "updatedReplicas": new.view.status.replicas if new is not None else 0,
        "readyReplicas": sum(each.view.status.ready_replicas for each in sets),
        "availableReplicas": available,
        "unavailableReplicas": max(sum(map(size_of, sets)) - available, 0),
    }


def is_complete(deployment: OneDeployment, status: Mapping[str, Any]) -> bool:
    """Every wanted pod is new and available, and no other is left."""
    wanted = wanted_replicas(deployment)
    return bool(
        status["updatedReplicas"] == status["replicas"] == status["availableReplicas"] == wanted
        and status["observedGeneration"] >= deployment.view.metadata.generation
    )


def find(status: Mapping[str, Any], type_: str) -> Condition | None:
    return next((each for each in status.get("conditions") or () if each["type"] == type_), None)


def with_condition(
    status: Mapping[str, Any], type_: str, value: str, reason: str, message: str, now: datetime
) -> list[Condition]:
    """The conditions with this one in them. The time of the last transition moves only with the value."""
    stamp = format_time(now)
    before = find(status, type_)
    if before is not None and (before["status"], before["reason"]) == (value, reason):
        return list(status.get("conditions") or ())
    since = before["lastTransitionTime"] if before is not None and before["status"] == value else stamp
    made = {
        "type": type_, "status": value, "lastUpdateTime": stamp, "lastTransitionTime": since, "reason": reason,
        "message": message,
    }  # fmt: skip
    return [*(each for each in status.get("conditions") or () if each["type"] != type_), made]


def next_status(deployment: OneDeployment, new: OneSet | None, sets: Sequence[OneSet], now: datetime) -> Status:
    """The whole status as it should stand now."""
    before: Mapping[str, Any] = deployment.document.get("status") or {}
    status = {**before, **counts(deployment, new, sets)}
    enough = status["availableReplicas"] >= wanted_replicas(deployment) - max_unavailable(deployment)
    status["conditions"] = (
        with_condition(status, AVAILABLE, "True", "MinimumReplicasAvailable", _HAS_MINIMUM, now)
        if enough
        else with_condition(status, AVAILABLE, "False", "MinimumReplicasUnavailable", _NO_MINIMUM, now)
    )
    if deployment.view.spec.paused or not has_deadline(deployment):
        return status
    status["conditions"] = _progress(deployment, new, before, status, now)
    return status


_HAS_MINIMUM = "Deployment has minimum availability."
_NO_MINIMUM = "Deployment does not have minimum availability."


def _progress(
    deployment: OneDeployment, new: OneSet | None, before: Mapping[str, Any], status: Status, now: datetime
) -> list[Condition]:
    current = find(status, PROGRESSING)
    finished = status["replicas"] == status["updatedReplicas"] and current is not None and current["reason"] == COMPLETE
    if finished:
        return list(status["conditions"])
    subject = f'ReplicaSet "{new.view.metadata.name}"' if new is not None else f'Deployment "{_name(deployment)}"'
    if is_complete(deployment, status):
        return with_condition(status, PROGRESSING, "True", COMPLETE, f"{subject} has successfully progressed.", now)
    if _has_moved(before, status):
        # A new report each time, as the deadline counts from the last one.
        rest = {**status, "conditions": [each for each in status["conditions"] if each["type"] != PROGRESSING]}
        made = with_condition(rest, PROGRESSING, "True", UPDATED, f"{subject} is progressing.", now)
        if current is not None and current["status"] == "True":
            made[-1]["lastTransitionTime"] = current["lastTransitionTime"]
        return made
    if seconds_left(deployment, status, now) == 0:
        return with_condition(status, PROGRESSING, "False", TIMED_OUT, f"{subject} has timed out progressing.", now)
    return list(status["conditions"])


def _name(deployment: OneDeployment) -> str:
    return deployment.view.metadata.name


def _has_moved(before: Mapping[str, Any], status: Status) -> bool:
    old = {name: before.get(name) or 0 for name in _COUNTS}
    return bool(
        status["updatedReplicas"] > old["updatedReplicas"]
        or status["replicas"] - status["updatedReplicas"] < old["replicas"] - old["updatedReplicas"]
        or status["readyReplicas"] > old["readyReplicas"]
        or status["availableReplicas"] > old["availableReplicas"]
    )


def has_deadline(deployment: OneDeployment) -> bool:
    deadline = deployment.view.spec.progress_deadline_seconds
    return deadline is not None and deadline != _NO_DEADLINE


def seconds_left(deployment: OneDeployment, status: Mapping[str, Any], now: datetime) -> float | None:
    """Until the rollout has taken too long without a step; zero when it has; none when no deadline runs."""
    current, deadline = find(status, PROGRESSING), deployment.view.spec.progress_deadline_seconds
    if current is None or current["reason"] in (COMPLETE, PAUSED) or not has_deadline(deployment):
        return None
    if current["reason"] == TIMED_OUT:
        return 0.0
    ends = parse_time(current["lastUpdateTime"]) + timedelta(seconds=deadline or 0)
    return max((ends - now).total_seconds(), 0.0)


def differs(before: Mapping[str, Any], after: Status) -> bool:
    """Whether there is anything to write; a count of zero and none are the same."""
    return any((before.get(name) or 0) != after[name] for name in (*_COUNTS, "observedGeneration")) or (
        list(before.get("conditions") or ()) != after.get("conditions", [])
        or before.get("collisionCount") != after.get("collisionCount")
    )
