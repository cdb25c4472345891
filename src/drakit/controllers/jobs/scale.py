"""How many pods a job should have, which ones it makes and which ones go. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from drakit.api.objects.batch import Job
from drakit.controllers.jobs.counts import JobCounts, counts_as_failed
from drakit.controllers.jobs.pods import (
    INDEXED,
    REPLACE_FAILED,
    OnePod,
    ended_at,
    failures_of,
    has_failed,
    index_of,
    is_active,
    is_ready,
    is_terminating,
)

BURST = 500
"""Pods that are made in one go."""
_FIRST_DELAY = timedelta(seconds=10)
_LONGEST_DELAY = timedelta(minutes=10)


class Demand(msgspec.Struct, frozen=True):
    """`make`: the index (none in a job without indexes) and its failures so far. `wait`: until more may be made."""

    make: list[tuple[int | None, int | None]]
    remove: list[OnePod]
    wait: timedelta = timedelta()


def demand(
    job: Job, pods: Sequence[OnePod], counts: JobCounts, now: datetime, remembered: Mapping[str, datetime]
) -> Demand:
    active = [pod for pod in pods if is_active(pod)]
    if job.spec.suspend:
        return Demand([], active)
    wanted = _wanted(job, counts, len(active))
    too_many = max(len(active) - wanted, len(_surplus(job, active)))
    if too_many > 0:
        return Demand([], _removable(job, active, counts)[:too_many])
    held = sum(map(is_terminating, pods)) if job.spec.pod_replacement_policy == REPLACE_FAILED else 0
    missing = min(wanted - len(active) - held, BURST)
    if missing <= 0:
        return Demand([], [])
    if job.spec.completion_mode == INDEXED:
        return _of_indexes(job, pods, counts, missing, now, remembered)
    wait = _delay(*_failures(job, pods, remembered), now)
    return Demand([], [], wait) if wait else Demand([(None, None)] * missing, [])


def _wanted(job: Job, counts: JobCounts, active: int) -> int:
    parallelism, completions = job.spec.parallelism or 0, job.spec.completions
    if completions is None:
        # Once one has succeeded, those that run may end and no more are made.
        return min(active, parallelism) if counts.succeeded else parallelism
    left = completions - counts.succeeded - len(counts.failed_indexes)
    return max(min(left, parallelism), 0)


def _surplus(job: Job, active: list[OnePod]) -> list[OnePod]:
    """Pods that work on an index on which another pod works, or on one that the job has not."""
    if job.spec.completion_mode != INDEXED:
        return []
    seen: set[int] = set()
    extra = []
    for pod in sorted(active, key=lambda each: not is_ready(each)):
        index = index_of(pod, job)
        if index is None or index in seen:
            extra.append(pod)
        else:
            seen.add(index)
    return extra


def _removable(job: Job, active: list[OnePod], counts: JobCounts) -> list[OnePod]:
    """Surplus and done indexes first, then the higher indexes; without indexes, the youngest and those not ready."""
    extra = {pod.view.metadata.uid for pod in _surplus(job, active)}

    def worth(pod: OnePod) -> tuple[bool, bool, int, str]:
        index = index_of(pod, job)
        done = index is not None and index in counts.succeeded_indexes
        kept = pod.view.metadata.uid not in extra and not done
        return kept, is_ready(pod), -(index or 0), pod.view.metadata.name

    youngest = sorted(active, key=lambda pod: pod.view.metadata.creation_timestamp or "", reverse=True)
    return sorted(youngest, key=worth)


def _of_indexes(
    job: Job, pods: Sequence[OnePod], counts: JobCounts, missing: int, now: datetime, remembered: Mapping[str, datetime]
) -> Demand:
    by_index: dict[int, list[OnePod]] = {}
    for pod in pods:
        index = index_of(pod, job)
        if index is not None:
            by_index.setdefault(index, []).append(pod)
    make: list[tuple[int | None, int | None]] = []
    waits: list[timedelta] = []
    per_index = job.spec.backoff_limit_per_index is not None
    wait = timedelta() if per_index else _delay(*_failures(job, pods, remembered), now)
    for index in range(job.spec.completions or 0):
        theirs = by_index.get(index, [])
        # An index has one pod at a time: it is skipped while one works on it, or holds its devices until it is gone.
        if len(make) >= missing or index in counts.succeeded_indexes or index in counts.failed_indexes:
            continue
        if any(map(is_active, theirs)) or (_replaces_failed(job) and any(map(is_terminating, theirs))):
            continue
        if per_index:
            failures, last = _index_failures(job, theirs)
            wait = _delay(failures, last, now)
        if wait:
            waits.append(wait)
        else:
            make.append((index, failures if per_index else None))
    return Demand(make, [], min(waits, default=timedelta()))


def _replaces_failed(job: Job) -> bool:
    return job.spec.pod_replacement_policy == REPLACE_FAILED


def _index_failures(job: Job, pods: list[OnePod]) -> tuple[int, datetime | None]:
    failed = [pod for pod in pods if has_failed(pod, job)]
    counted = max((failures_of(pod) + counts_as_failed(job, pod) for pod in failed), default=0)
    return counted, max(map(ended_at, failed), default=None)


def _failures(job: Job, pods: Sequence[OnePod], remembered: Mapping[str, datetime]) -> tuple[int, datetime | None]:
    """How many pods have failed since one last succeeded, and when the last of them did."""
    succeeded = [ended_at(pod) for pod in pods if pod.view.status.phase == "Succeeded"]
    since = max(succeeded, default=None)
    ends = {**remembered, **{pod.view.metadata.uid: ended_at(pod) for pod in pods if has_failed(pod, job)}}
    later = [end for end in ends.values() if since is None or end > since]
    return len(later), max(later, default=None)


def _delay(failures: int, last: datetime | None, now: datetime) -> timedelta:
    """Twice as long after each failure, at most ten minutes."""
    if not failures or last is None:
        return timedelta()
    doublings: int = 1 << min(failures - 1, 16)
    pause = min(_FIRST_DELAY * doublings, _LONGEST_DELAY)
    return max(last + pause - now, timedelta())
