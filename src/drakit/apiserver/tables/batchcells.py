"""The cells of kinds that make pods or bound them: jobs, stateful sets, budgets, autoscalers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from drakit.api.objects.plain import Plain
from drakit.api.text.times import parse_time
from drakit.api.versions.autoscalers import autoscaler_from_v1
from drakit.apiserver.tables.ages import age, human_duration
from drakit.apiserver.tables.parts import (
    NONE,
    UNSET,
    Cells,
    container_cells,
    labels_text,
    named,
    selector_text,
    spec_of,
    status_of,
    template_cells,
)

_NOT_GIVEN = "N/A"
_MAX_METRICS = 2
_STATES = ("Complete", "Failed", "Terminating", "Suspended", "FailureTarget", "SuccessCriteriaMet")
_SOURCES = {
    "External": "external", "Pods": "pods", "Object": "object", "Resource": "resource",
    "ContainerResource": "containerResource",
}  # fmt: skip


def _job(item: Plain, now: datetime) -> list[Any]:
    return [_job_state(item), _completions(item), _duration(status_of(item), now)]


def _job_state(item: Plain) -> str:
    held = {each.get("type") for each in status_of(item).get("conditions") or () if each.get("status") == "True"}
    if (item.get("metadata") or {}).get("deletionTimestamp"):
        held.add("Terminating")
    return next((state for state in _STATES if state in held), "Running")


def _completions(item: Plain) -> str:
    spec, done = spec_of(item), status_of(item).get("succeeded", 0)
    wanted, parallel = spec.get("completions"), spec.get("parallelism") or 0
    if wanted is not None:
        return f"{done}/{wanted}"
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _duration(status: Plain, now: datetime) -> str:
    if not status.get("startTime"):
        return ""
    end = parse_time(status["completionTime"]) if status.get("completionTime") else now
    return human_duration((end - parse_time(status["startTime"])).total_seconds())


def _cron_job(item: Plain, now: datetime) -> list[Any]:
    spec, status = spec_of(item), status_of(item)
    suspended = "<unset>" if spec.get("suspend") is None else str(spec["suspend"])
    last = age(status["lastScheduleTime"], now) if status.get("lastScheduleTime") else NONE
    return [spec.get("schedule", ""), spec.get("timeZone") or NONE, suspended, len(status.get("active") or ()), last]


def _cron_job_wide(item: Plain, _now: datetime) -> list[Any]:
    inner = (spec_of(item).get("jobTemplate") or {}).get("spec") or {}
    return [*container_cells(inner.get("template")), selector_text(inner.get("selector"))]


def _stateful_set(item: Plain, _now: datetime) -> list[Any]:
    return [f"{status_of(item).get('readyReplicas', 0)}/{spec_of(item).get('replicas', 0)}"]


def _replication_controller(item: Plain, _now: datetime) -> list[Any]:
    status = status_of(item)
    return [spec_of(item).get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)]


def _replication_controller_wide(item: Plain, _now: datetime) -> list[Any]:
    return [*container_cells(spec_of(item).get("template")), labels_text(spec_of(item).get("selector"))]


def _pod_template(item: Plain, _now: datetime) -> list[Any]:
    template = item.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels")
    return [(item.get("metadata") or {}).get("name", ""), *container_cells(template), labels_text(labels)]


def _budget(item: Plain, _now: datetime) -> list[Any]:
    spec = spec_of(item)
    bounds = [_NOT_GIVEN if spec.get(name) is None else str(spec[name]) for name in ("minAvailable", "maxUnavailable")]
    return [*bounds, status_of(item).get("disruptionsAllowed", 0)]


def _revision(item: Plain, _now: datetime) -> list[Any]:
    owners = (item.get("metadata") or {}).get("ownerReferences") or ()
    owner = next((each for each in owners if each.get("controller")), None)
    shown = NONE
    if owner is not None:
        group = owner.get("apiVersion", "").rpartition("/")[0]
        kind = f"{owner.get('kind', '')}.{group}" if group else owner.get("kind", "")
        shown = f"{kind.lower()}/{owner.get('name', '')}"
    return [shown, item.get("revision", 0)]


def _autoscaler(item: Plain, _now: datetime) -> list[Any]:
    newer = autoscaler_from_v1(item) if item.get("apiVersion") == "autoscaling/v1" else item
    spec, status = spec_of(newer), status_of(newer)
    target = spec.get("scaleTargetRef") or {}
    lowest = UNSET if spec.get("minReplicas") is None else str(spec["minReplicas"])
    targets = _metrics(spec.get("metrics") or [], status.get("currentMetrics") or [])
    reference = f"{target.get('kind', '')}/{target.get('name', '')}"
    return [reference, targets, lowest, spec.get("maxReplicas", 0), status.get("currentReplicas", 0)]


def _metrics(wanted: list[Plain], current: list[Plain]) -> str:
    if not wanted:
        return NONE
    texts = [_metric(each, current[index] if index < len(current) else {}) for index, each in enumerate(wanted)]
    more = f" + {len(texts) - _MAX_METRICS} more..." if len(texts) > _MAX_METRICS else ""
    return ", ".join(texts[:_MAX_METRICS]) + more


def _metric(wanted: Plain, current: Plain) -> str:
    field = _SOURCES.get(wanted.get("type", ""))
    if field is None:
        return "<unknown type>"
    source, seen = wanted.get(field) or {}, (current.get(field) or {}).get("current") or {}
    target = source.get("target") or {}
    prefix = f"{source.get('name', '')}: " if field in ("resource", "containerResource") else ""
    if target.get("averageValue") is not None:
        suffix = " (avg)" if field in ("external", "object") else ""
        return f"{prefix}{seen.get('averageValue', '<unknown>')}/{target['averageValue']}{suffix}"
    if prefix:
        used, limit = seen.get("averageUtilization"), target.get("averageUtilization")
        shown = "<unknown>" if used is None else f"{used}%"
        return f"{prefix}{shown}/{'<auto>' if limit is None else f'{limit}%'}"
    return f"{seen.get('value', '<unknown>')}/{target.get('value', '<unknown>')}"


BATCH_CELLS: Mapping[str, Cells] = {
    "ControllerRevision": named(_revision),
    "CronJob": named(_cron_job, wide=_cron_job_wide),
    "HorizontalPodAutoscaler": named(_autoscaler),
    "Job": named(_job, wide=template_cells),
    "PodDisruptionBudget": named(_budget),
    "PodTemplate": _pod_template,
    "ReplicationController": named(_replication_controller, wide=_replication_controller_wide),
    "StatefulSet": named(_stateful_set, wide=lambda item, _: container_cells(spec_of(item).get("template"))),
}
