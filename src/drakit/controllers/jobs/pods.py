"""What a pod means for its job, and the pods that a job makes. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from drakit.api import Pod
from drakit.api.objects.batch import Job, PodFailurePolicy, PodFailurePolicyRule
from drakit.api.objects.partial import Partial
from drakit.api.objects.pods import ContainerStatus
from drakit.api.text.times import parse_time

TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
INDEXED = "Indexed"
REPLACE_FAILED = "Failed"
_INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
_LONGEST_PREFIX = 58
OnePod = Partial[Pod]
OneJob = Partial[Job]


def is_tracked(pod: OnePod) -> bool:
    """Whether the pod is held until its job has counted it."""
    return TRACKING in pod.view.metadata.finalizers


def is_active(pod: OnePod) -> bool:
    return not pod.view.is_terminal and pod.view.metadata.deletion_timestamp is None


def is_terminating(pod: OnePod) -> bool:
    return not pod.view.is_terminal and pod.view.metadata.deletion_timestamp is not None


def is_ready(pod: OnePod) -> bool:
    return any(each.type == "Ready" and each.status == "True" for each in pod.view.status.conditions)


def has_failed(pod: OnePod, job: Job) -> bool:
    """A pod that is being deleted has failed, unless the job waits for what becomes of it."""
    if pod.view.status.phase == "Failed":
        return True
    waits = job.spec.pod_replacement_policy == REPLACE_FAILED
    return not waits and pod.view.metadata.deletion_timestamp is not None and pod.view.status.phase != "Succeeded"


def index_of(pod: OnePod, job: Job) -> int | None:
    """Which of an indexed job's indexes the pod works on, if it is one that the job has."""
    text = pod.view.metadata.annotations.get(INDEX, "")
    return int(text) if text.isdecimal() and int(text) < (job.spec.completions or 0) else None


def failures_of(pod: OnePod) -> int:
    """How many pods of its index had failed when the pod was made."""
    text = pod.view.metadata.annotations.get(FAILURES, "")
    return int(text) if text.isdecimal() else 0


def ended_at(pod: OnePod) -> datetime:
    """When a pod that has failed did so, as far as its status tells."""
    status, metadata = pod.view.status, pod.view.metadata
    ends = [(each.state.get("terminated") or {}).get("finishedAt") for each in status.container_statuses]
    if known := [each for each in ends if each]:
        return max(map(parse_time, known))
    for condition in status.conditions:
        if condition.type == "Ready" and condition.status == "False" and condition.last_transition_time:
            return parse_time(condition.last_transition_time)
    if metadata.deletion_timestamp:
        return parse_time(metadata.deletion_timestamp) - timedelta(seconds=metadata.deletion_grace_period_seconds or 0)
    return parse_time(metadata.creation_timestamp or "1970-01-01T00:00:00Z")


def match_policy(policy: PodFailurePolicy | None, pod: OnePod) -> tuple[str, str] | None:
    """What the first rule that fits says about a failed pod: the action, and why."""
    for number, rule in enumerate(policy.rules if policy is not None else ()):
        if why := _match(rule, pod):
            return rule.action, f"{why} matching {rule.action} rule at index {number}"
    return None


def _match(rule: PodFailurePolicyRule, pod: OnePod) -> str:
    metadata, status = pod.view.metadata, pod.view.status
    place = f"{metadata.namespace}/{metadata.name}"
    if rule.on_exit_codes is not None:
        for each in (*status.container_statuses, *status.init_container_statuses):
            code = _exit_code(each)
            named = rule.on_exit_codes.container_name in (None, each.name)
            if code and named and (code in rule.on_exit_codes.values) == (rule.on_exit_codes.operator == "In"):
                return f"Container {each.name} for pod {place} failed with exit code {code}"
        return ""
    wanted = {(each.type, each.status) for each in rule.on_pod_conditions}
    found = next((each for each in status.conditions if (each.type, each.status) in wanted), None)
    return f"Pod {place} has condition {found.type}" if found is not None else ""


def _exit_code(status: ContainerStatus) -> int:
    ended = status.state.get("terminated")
    return int(ended.get("exitCode") or 0) if ended else 0


def new_pod(job: OneJob, index: int | None, failures: int | None) -> dict[str, Any]:
    """The next pod of a job; of an index, with what the index has behind it."""
    template, view = job.document["spec"]["template"], job.view
    about, spec = template.get("metadata") or {}, dict(template["spec"])
    labels, annotations = dict(about.get("labels") or {}), dict(about.get("annotations") or {})
    prefix = f"{view.metadata.name}-"[:_LONGEST_PREFIX]
    if index is not None:
        labels[INDEX] = annotations[INDEX] = str(index)
        if failures is not None:
            annotations[FAILURES] = str(failures)
        # The index must survive in the name: the job's part is cut, not the end.
        end = f"-{index}-"
        prefix = view.metadata.name[: _LONGEST_PREFIX - len(end)] + end
        spec["hostname"] = f"{view.metadata.name}-{index}"
        for part in ("initContainers", "containers"):
            if spec.get(part):
                spec[part] = [_with_index(container) for container in spec[part]]
    metadata = {
        "generateName": prefix,
        "namespace": view.metadata.namespace,
        "labels": labels,
        "annotations": annotations,
        "finalizers": [*(about.get("finalizers") or ()), TRACKING],
        "ownerReferences": [owner_of(job)],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _with_index(container: dict[str, Any]) -> dict[str, Any]:
    environment = list(container.get("env") or ())
    if any(each.get("name") == _INDEX_VARIABLE for each in environment):
        return container
    reference = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}}
    return {**container, "env": [*environment, {"name": _INDEX_VARIABLE, "valueFrom": reference}]}


def owner_of(job: OneJob) -> dict[str, Any]:
    metadata = job.view.metadata
    return {
        "apiVersion": "batch/v1", "kind": "Job", "name": metadata.name, "uid": metadata.uid,
        "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip
