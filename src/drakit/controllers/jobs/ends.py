"""Whether a job is over, and why. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from drakit.api.objects.batch import Job, SuccessPolicy
from drakit.api.text.times import parse_time
from drakit.controllers.jobs.counts import FAIL_JOB, JobCounts
from drakit.controllers.jobs.indexes import parse_indexes
from drakit.controllers.jobs.pods import INDEXED, OnePod, has_failed, is_active, match_policy

COMPLETE, FAILED = "Complete", "Failed"
SUCCESS, FAILURE, SUSPENDED = "SuccessCriteriaMet", "FailureTarget", "Suspended"


class JobEnd(msgspec.Struct, frozen=True):
    """`target` is said at once; `final` once no pod of the job is left running."""

    target: str
    reason: str
    message: str

    @property
    def final(self) -> str:
        return COMPLETE if self.target == SUCCESS else FAILED


def is_over(job: Job) -> bool:
    """Whether a job has ended for good."""
    return any(each.type in (COMPLETE, FAILED) and each.status == "True" for each in job.status.conditions)


def ended_since(job: Job) -> datetime | None:
    for each in job.status.conditions:
        if each.type in (COMPLETE, FAILED) and each.status == "True" and each.last_transition_time:
            return parse_time(each.last_transition_time)
    return None


def judge(job: Job, pods: Sequence[OnePod], counts: JobCounts, now: datetime) -> JobEnd | None:
    """Why a job ends although it could go on; what was said before stands."""
    for target in (SUCCESS, FAILURE):
        said = next((each for each in job.status.conditions if each.type == target and each.status == "True"), None)
        if said is not None:
            return JobEnd(target, said.reason, said.message)
    return _failure(job, pods, counts, now) or _by_indexes(job, counts)


def _failure(job: Job, pods: Sequence[OnePod], counts: JobCounts, now: datetime) -> JobEnd | None:
    for pod in pods:
        if has_failed(pod, job):
            said = match_policy(job.spec.pod_failure_policy, pod)
            if said is not None and said[0] == FAIL_JOB:
                return JobEnd(FAILURE, "PodFailurePolicy", said[1])
    limit = job.spec.backoff_limit
    if limit is not None and (counts.failed > limit or _restarts_exceed(job, pods, limit)):
        return JobEnd(FAILURE, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    left = time_left(job, now)
    if left is not None and left <= timedelta():
        return JobEnd(FAILURE, "DeadlineExceeded", "Job was active longer than specified deadline")
    return None


def time_left(job: Job, now: datetime) -> timedelta | None:
    """Until the deadline of a job that runs."""
    seconds, start = job.spec.active_deadline_seconds, job.status.start_time
    if seconds is None or start is None or job.spec.suspend:
        return None
    return parse_time(start) + timedelta(seconds=seconds) - now


def _restarts_exceed(job: Job, pods: Sequence[OnePod], limit: int) -> bool:
    """Containers that are started again in the same pod count as failures too."""
    if job.spec.template.spec.restart_policy != "OnFailure":
        return False
    running = [pod.view.status for pod in pods if is_active(pod) and pod.view.status.phase in ("Running", "Pending")]
    restarts = sum(
        each.restart_count
        for status in running
        for each in (*status.init_container_statuses, *status.container_statuses)
    )
    return restarts > 0 if limit == 0 else restarts >= limit


def _by_indexes(job: Job, counts: JobCounts) -> JobEnd | None:
    if job.spec.completion_mode != INDEXED:
        return None
    failed, most = len(counts.failed_indexes), job.spec.max_failed_indexes
    if most is not None and failed > most:
        message = "Job has exceeded the specified maximal number of failed indexes"
        return JobEnd(FAILURE, "MaxFailedIndexesExceeded", message)
    if failed and failed + len(counts.succeeded_indexes) >= (job.spec.completions or 0):
        return JobEnd(FAILURE, "FailedIndexes", "Job has failed indexes")
    rule = _matched(job.spec.success_policy, counts.succeeded_indexes, job.spec.completions or 0)
    return None if rule is None else JobEnd(SUCCESS, "SuccessPolicy", f"Matched rules at index {rule}")


def _matched(policy: SuccessPolicy | None, done: set[int], completions: int) -> int | None:
    for number, rule in enumerate(policy.rules if policy is not None and done else ()):
        if rule.succeeded_indexes is not None:
            wanted = parse_indexes(rule.succeeded_indexes, completions)
            enough = len(wanted) if rule.succeeded_count is None else rule.succeeded_count
            if wanted and len(wanted & done) >= enough:
                return number
        elif rule.succeeded_count is not None and len(done) >= rule.succeeded_count:
            return number
    return None


def completion(job: Job, counts: JobCounts, active: int) -> JobEnd | None:
    """Whether as many pods have succeeded as are wanted, and none is left."""
    wanted = job.spec.completions
    enough = counts.succeeded > 0 if wanted is None else counts.succeeded >= wanted
    if not enough or active:
        return None
    return JobEnd(SUCCESS, "CompletionsReached", "Reached expected number of succeeded pods")
