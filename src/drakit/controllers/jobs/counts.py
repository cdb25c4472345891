"""How far a job is, by its status and its pods. Pure.

A pod has a finalizer until it is counted. First the status lists it as ended (`uncountedTerminatedPods`, or the index
in `completedIndexes`), then the finalizer goes, then the list becomes a number. So a crash at any point counts no pod
twice and loses none.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from drakit.api.objects.batch import Job
from drakit.controllers.jobs.indexes import parse_indexes
from drakit.controllers.jobs.pods import (
    INDEXED,
    OnePod,
    failures_of,
    has_failed,
    index_of,
    is_tracked,
    match_policy,
)

IGNORE, FAIL_JOB, FAIL_INDEX = "Ignore", "FailJob", "FailIndex"


class JobCounts(msgspec.Struct, frozen=True):
    """`new_…` are pods that the status does not list yet; `…_indexes` include them.

    `succeeded` and `failed` are all that ever ended: counted, listed and new.
    """

    new_succeeded: list[OnePod]
    new_failed: list[OnePod]
    succeeded: int
    failed: int
    succeeded_indexes: set[int]
    failed_indexes: set[int]


def count(job: Job, pods: Sequence[OnePod]) -> JobCounts:
    status = job.status
    listed = status.uncounted_terminated_pods
    ended = {*(listed.succeeded if listed else ()), *(listed.failed if listed else ())}
    new = [pod for pod in pods if is_tracked(pod) and pod.view.metadata.uid not in ended]
    succeeded = [pod for pod in new if pod.view.status.phase == "Succeeded"]
    failed = [pod for pod in new if has_failed(pod, job) and counts_as_failed(job, pod)]
    failed_total = status.failed + len(failed) + len(listed.failed if listed else ())
    if job.spec.completion_mode == INDEXED:
        completed = _completed(job, pods)
        return JobCounts(
            succeeded, failed, len(completed), failed_total, completed, _failed_indexes(job, pods, completed)
        )
    total = status.succeeded + len(succeeded) + len(listed.succeeded if listed else ())
    return JobCounts(succeeded, failed, total, failed_total, set(), set())


def counts_as_failed(job: Job, pod: OnePod) -> bool:
    if job.spec.completion_mode == INDEXED and index_of(pod, job) is None:
        return False
    said = match_policy(job.spec.pod_failure_policy, pod)
    return said is None or said[0] != IGNORE


def _completed(job: Job, pods: Sequence[OnePod]) -> set[int]:
    done = parse_indexes(job.status.completed_indexes, job.spec.completions or 0)
    for pod in pods:
        index = index_of(pod, job)
        if index is not None and pod.view.status.phase == "Succeeded" and is_tracked(pod):
            done.add(index)
    return done


def _failed_indexes(job: Job, pods: Sequence[OnePod], completed: set[int]) -> set[int]:
    """Indexes that have failed as often as an index may, or whose pod failed in a way that is final."""
    limit = job.spec.backoff_limit_per_index
    if limit is None:
        return set()
    found = parse_indexes(job.status.failed_indexes or "", job.spec.completions or 0)
    for pod in pods:
        index = index_of(pod, job)
        if index is None or index in completed or not is_tracked(pod) or not has_failed(pod, job):
            continue
        said = match_policy(job.spec.pod_failure_policy, pod)
        if (said and said[0] == FAIL_INDEX) or (counts_as_failed(job, pod) and failures_of(pod) >= limit):
            found.add(index)
    return found
