"""What is to be done about a job next. Pure: the same job and pods at the same time give the same plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from drakit.api.objects.batch import Job
from drakit.controllers.jobs.counts import JobCounts, count, counts_as_failed
from drakit.controllers.jobs.ends import FAILURE, JobEnd, completion, is_over, judge, time_left
from drakit.controllers.jobs.indexes import parse_indexes
from drakit.controllers.jobs.pods import (
    INDEXED,
    OneJob,
    OnePod,
    failures_of,
    has_failed,
    index_of,
    is_active,
    is_terminating,
    is_tracked,
)
from drakit.controllers.jobs.scale import demand
from drakit.controllers.jobs.status import JobEvent, next_status

_MOST_LISTED = 500
_NOTHING: Mapping[str, datetime] = {}


class JobPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Done in this order: the status written (after its events), pods removed, pods made, pods released.

    `release`: pods that the status, as it is stored, has counted; they lose the finalizer.
    """

    remove: list[OnePod] = []
    make: list[tuple[int | None, int | None]] = []
    status: dict[str, Any] | None = None
    events: list[JobEvent] = []
    release: list[OnePod] = []
    wait: timedelta | None = None


def plan(job: OneJob, pods: Sequence[OnePod], now: datetime, remembered: Mapping[str, datetime] = _NOTHING) -> JobPlan:
    """`remembered`: when pods failed that are gone, by uid."""
    view = job.view
    if is_over(view):
        return JobPlan(release=[pod for pod in pods if is_tracked(pod)])
    counts = count(view, pods)
    end = judge(view, pods, counts, now)
    active = [pod for pod in pods if is_active(pod)]
    going = view.metadata.deletion_timestamp is not None
    if end is not None and active:
        # The end is stored before pods go: without them it might be another.
        status, events = _status(job, pods, counts, end, now)
        return JobPlan(remove=active, status=status, events=events)
    wait = time_left(view, now)
    if end is None and not going:
        wanted = demand(view, pods, counts, now, remembered)
        if wanted.remove or wanted.make:
            rest = _status(job, pods, counts, None, now)
            return JobPlan(remove=wanted.remove, make=wanted.make, status=rest[0], events=rest[1])
        wait = min((each for each in (wait, wanted.wait or None) if each is not None), default=None)
        end = completion(view, counts, len(active))
    status, events = _status(job, pods, counts, end, now)
    return JobPlan(status=status, events=events, release=_released(view, pods, end), wait=wait)


def _status(
    job: OneJob, pods: Sequence[OnePod], counts: JobCounts, end: JobEnd | None, now: datetime
) -> tuple[dict[str, Any] | None, list[JobEvent]]:
    """The status, if it is not the stored one, with the pods that are to be counted now."""
    view = job.view
    succeeded = [] if view.spec.completion_mode == INDEXED else counts.new_succeeded
    failed = [pod for pod in counts.new_failed if _may_go(view, pods, pod, end)]
    if end is not None and end.target == FAILURE:
        failed += _cut_short(view, pods, failed)
    failed = failed[: max(_MOST_LISTED - len(succeeded), 0)]
    return next_status(job, pods, counts, end, succeeded[:_MOST_LISTED], failed, now)


def _cut_short(job: Job, pods: Sequence[OnePod], failed: list[OnePod]) -> list[OnePod]:
    """Pods that a failed job did not let end: they have failed with it."""
    listed = job.status.uncounted_terminated_pods
    known = {pod.view.metadata.uid for pod in failed} | {*(listed.failed if listed else ())}
    return [
        pod for pod in pods
        if is_tracked(pod) and is_terminating(pod) and pod.view.metadata.uid not in known
        and counts_as_failed(job, pod)
    ]  # fmt: skip


def _released(job: Job, pods: Sequence[OnePod], end: JobEnd | None) -> list[OnePod]:
    listed = job.status.uncounted_terminated_pods
    counted = {*(listed.succeeded if listed else ()), *(listed.failed if listed else ())}
    done = parse_indexes(job.status.completed_indexes, job.spec.completions or 0)
    return [
        pod for pod in pods
        if is_tracked(pod) and _may_go(job, pods, pod, end) and _is_counted(job, pod, counted, done, end)
    ]  # fmt: skip


def _is_counted(job: Job, pod: OnePod, counted: set[str], done: set[int], end: JobEnd | None) -> bool:
    """Whether the stored status has the pod, or need not have it."""
    if pod.view.metadata.uid in counted:
        return True
    index = index_of(pod, job)
    if pod.view.status.phase == "Succeeded":
        return job.spec.completion_mode == INDEXED and (index is None or index in done)
    fails = has_failed(pod, job) or (end is not None and end.target == FAILURE)
    return not fails or not counts_as_failed(job, pod)


def _may_go(job: Job, pods: Sequence[OnePod], pod: OnePod, end: JobEnd | None) -> bool:
    """Whether the pod is needed no more. A failed pod of an index is, until another has taken its failures over."""
    if end is not None or job.metadata.deletion_timestamp is not None or pod.view.status.phase == "Succeeded":
        return True
    if not has_failed(pod, job):
        return False
    index = index_of(pod, job)
    if job.spec.backoff_limit_per_index is None or index is None:
        return True
    completions = job.spec.completions or 0
    settled = parse_indexes(job.status.failed_indexes or "", completions)
    settled |= parse_indexes(job.status.completed_indexes, completions)
    # The count of failures lives in the pods' annotations alone: the last one that has it must not go.
    later = (each for each in pods if index_of(each, job) == index and failures_of(each) > failures_of(pod))
    return index in settled or any(later)
