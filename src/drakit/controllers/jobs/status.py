"""The status of a job: numbers, indexes, conditions, and what is told with them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from drakit.api.objects.batch import Job
from drakit.api.objects.plain import Plain
from drakit.api.text.times import format_time
from drakit.client.events import NORMAL, WARNING
from drakit.controllers.jobs.counts import JobCounts
from drakit.controllers.jobs.ends import COMPLETE, SUSPENDED, JobEnd
from drakit.controllers.jobs.indexes import format_indexes
from drakit.controllers.jobs.pods import INDEXED, OneJob, OnePod, is_active, is_ready, is_terminating, is_tracked

_LEFT_OUT = ("active", "succeeded", "failed", "completedIndexes", "startTime", "completionTime")


class JobEvent(msgspec.Struct, frozen=True):
    reason: str
    message: str
    type: str


def next_status(
    job: OneJob, pods: Sequence[OnePod], counts: JobCounts, end: JobEnd | None,
    succeeded: list[OnePod], failed: list[OnePod], now: datetime,
) -> tuple[Plain | None, list[JobEvent]]:  # fmt: skip
    """The status with those pods listed, if it differs from the stored one; and what people should know of it."""
    view, before = job.view, dict(job.document.get("status") or {})
    events: list[JobEvent] = []
    status = {**before, **_numbers(view, pods, counts), **_listed(view, pods, succeeded, failed)}
    conditions = list(before.get("conditions") or ())
    if end is not None:
        _set(conditions, end.target, "True", end.reason, end.message, now)
        # Complete or Failed comes when all pods are counted and none runs; until then only the target says so.
        if _is_settled(pods, status):
            _finish(status, conditions, end, events, now)
    elif view.metadata.deletion_timestamp is None:
        _suspend(view, status, conditions, events, now)
    if not status.get("startTime") and not view.spec.suspend:
        status["startTime"] = format_time(now)
    if conditions:
        status["conditions"] = conditions
    after = {name: value for name, value in status.items() if value or name not in _LEFT_OUT}
    return (None, []) if after == before else (after, events)


def _numbers(job: Job, pods: Sequence[OnePod], counts: JobCounts) -> Plain:
    active = [pod for pod in pods if is_active(pod)]
    numbers: Plain = {
        "active": len(active),
        "ready": sum(map(is_ready, active)),
        "terminating": sum(map(is_terminating, pods)),
    }
    if job.spec.completion_mode == INDEXED:
        numbers["succeeded"] = len(counts.succeeded_indexes)
        numbers["completedIndexes"] = format_indexes(counts.succeeded_indexes)
        if job.spec.backoff_limit_per_index is not None:
            numbers["failedIndexes"] = format_indexes(counts.failed_indexes)
    return numbers


def _listed(job: Job, pods: Sequence[OnePod], succeeded: list[OnePod], failed: list[OnePod]) -> Plain:
    """Pods that have lost the finalizer become numbers; new ones are listed."""
    tracked = {pod.view.metadata.uid for pod in pods if is_tracked(pod)}
    listed = job.status.uncounted_terminated_pods
    lists = {"succeeded": listed.succeeded if listed else (), "failed": listed.failed if listed else ()}
    numbers = {"succeeded": job.status.succeeded, "failed": job.status.failed}
    uncounted: Plain = {}
    for name, new in (("succeeded", succeeded), ("failed", failed)):
        numbers[name] += sum(uid not in tracked for uid in lists[name])
        kept = [uid for uid in lists[name] if uid in tracked] + [pod.view.metadata.uid for pod in new]
        if kept:
            uncounted[name] = kept
    if job.spec.completion_mode == INDEXED:
        del numbers["succeeded"]  # the indexes are the number
    return {**numbers, "uncountedTerminatedPods": uncounted}


def _is_settled(pods: Sequence[OnePod], status: Plain) -> bool:
    """Whether no pod runs and all are counted."""
    return not any(is_active(pod) or is_terminating(pod) or is_tracked(pod) for pod in pods) and not status.get(
        "uncountedTerminatedPods"
    )


def _finish(status: Plain, conditions: list[Plain], end: JobEnd, events: list[JobEvent], now: datetime) -> None:
    _set(conditions, end.final, "True", end.reason, end.message, now)
    if end.final == COMPLETE:
        status["completionTime"] = format_time(now)
        events.append(JobEvent("Completed", "Job completed", NORMAL))
    else:
        events.append(JobEvent(end.reason, end.message, WARNING))


def _suspend(job: Job, status: Plain, conditions: list[Plain], events: list[JobEvent], now: datetime) -> None:
    """A job that is suspended has not begun: its deadline counts from when it goes on."""
    said = next((each for each in conditions if each["type"] == SUSPENDED), None)
    suspended = said is not None and said["status"] == "True"
    if job.spec.suspend and not suspended:
        _set(conditions, SUSPENDED, "True", "JobSuspended", "Job suspended", now)
        events.append(JobEvent("Suspended", "Job suspended", NORMAL))
        status["startTime"] = None
    elif suspended and not job.spec.suspend:
        _set(conditions, SUSPENDED, "False", "JobResumed", "Job resumed", now)
        events.append(JobEvent("Resumed", "Job resumed", NORMAL))
        status["startTime"] = format_time(now)


def _set(conditions: list[Plain], type_: str, value: str, reason: str, message: str, now: datetime) -> None:
    known = next((number for number, each in enumerate(conditions) if each["type"] == type_), None)
    if known is not None and conditions[known]["status"] == value:
        return
    when = format_time(now)
    made = {
        "type": type_, "status": value, "reason": reason, "message": message,
        "lastProbeTime": when, "lastTransitionTime": when,
    }  # fmt: skip
    if known is None:
        conditions.append(made)
    else:
        conditions[known] = made
