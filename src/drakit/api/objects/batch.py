"""Views of `batch/v1`: Job and CronJob."""

from __future__ import annotations

from drakit.api.objects.meta import ObjectMeta
from drakit.api.objects.pods import PodTemplateSpec
from drakit.api.objects.wire import constant, nested, text
from drakit.base.labels import LabelSelector
from drakit.base.structs import Model


class ExitCodesRequirement(Model):
    container_name: str | None = None
    operator: str = text()
    values: tuple[int, ...] = ()


class PodConditionsPattern(Model):
    type: str = text()
    status: str = text()


class PodFailurePolicyRule(Model):
    action: str = text()
    on_exit_codes: ExitCodesRequirement | None = None
    on_pod_conditions: tuple[PodConditionsPattern, ...] = ()


class PodFailurePolicy(Model):
    rules: tuple[PodFailurePolicyRule, ...] = ()


class SuccessPolicyRule(Model):
    succeeded_indexes: str | None = None
    succeeded_count: int | None = None


class SuccessPolicy(Model):
    rules: tuple[SuccessPolicyRule, ...] = ()


class JobSpec(Model):
    parallelism: int | None = None
    completions: int | None = None
    active_deadline_seconds: int | None = None
    pod_failure_policy: PodFailurePolicy | None = None
    success_policy: SuccessPolicy | None = None
    backoff_limit: int | None = None
    backoff_limit_per_index: int | None = None
    max_failed_indexes: int | None = None
    selector: LabelSelector | None = None
    manual_selector: bool | None = None
    template: PodTemplateSpec = nested(PodTemplateSpec)
    ttl_seconds_after_finished: int | None = None
    completion_mode: str | None = None
    suspend: bool | None = None
    pod_replacement_policy: str | None = None
    managed_by: str | None = None


class JobCondition(Model):
    type: str = text()
    status: str = text()
    last_probe_time: str | None = None
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class UncountedTerminatedPods(Model):
    """Pods that have ended and still have the finalizer, not yet in `succeeded` and `failed`."""

    succeeded: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class JobStatus(Model):
    conditions: tuple[JobCondition, ...] = ()
    start_time: str | None = None
    completion_time: str | None = None
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int | None = None
    completed_indexes: str = ""
    failed_indexes: str | None = None
    uncounted_terminated_pods: UncountedTerminatedPods | None = None
    ready: int | None = None


class Job(Model):
    kind: str = constant("Job")
    api_version: str = constant("batch/v1")
    metadata: ObjectMeta = nested(ObjectMeta)
    spec: JobSpec = nested(JobSpec)
    status: JobStatus = nested(JobStatus)


class JobTemplateSpec(Model):
    metadata: ObjectMeta = nested(ObjectMeta)
    spec: JobSpec = nested(JobSpec)


class CronJobSpec(Model):
    schedule: str = text()
    time_zone: str | None = None
    starting_deadline_seconds: int | None = None
    concurrency_policy: str = ""
    suspend: bool | None = None
    job_template: JobTemplateSpec = nested(JobTemplateSpec)
    successful_jobs_history_limit: int | None = None
    failed_jobs_history_limit: int | None = None


class CronJobStatus(Model):
    last_schedule_time: str | None = None
    last_successful_time: str | None = None


class CronJob(Model):
    kind: str = constant("CronJob")
    api_version: str = constant("batch/v1")
    metadata: ObjectMeta = nested(ObjectMeta)
    spec: CronJobSpec = nested(CronJobSpec)
    status: CronJobStatus = nested(CronJobStatus)
