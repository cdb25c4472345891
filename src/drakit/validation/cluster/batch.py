"""Job and CronJob: numbers, indexes, rules about failures, the template, and what stays as it was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from drakit.api import Partial
from drakit.api.objects.batch import CronJob, Job, JobSpec, PodFailurePolicyRule
from drakit.base import names
from drakit.base.cron import CronError, parse_schedule
from drakit.base.fields import FieldError, Path, duplicate, invalid, not_supported, required, too_many
from drakit.validation.cluster.successpolicies import check_manager, check_success_policy
from drakit.validation.fields.metadata import IMMUTABLE, check_labels
from drakit.validation.pods.details import check_pod_details
from drakit.validation.pods.spec import check_pod_spec

_SPEC = Path("spec")
_NOT_NEGATIVE = "must be greater than or equal to 0"
_INDEXED = "Indexed"
_MOST_INDEXES = 100_000
_MOST_RULES = 20
_LONGEST_CRON_NAME = 52
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_NEEDS_INDEXES = "requires indexed completion mode"
_FIXED = ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
_NUMBERS = (
    "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
    "backoffLimitPerIndex", "maxFailedIndexes",
)  # fmt: skip
_STATUSES = ("False", "True", "Unknown")
_PLACEMENT = ("affinity", "nodeSelector", "schedulingGates", "tolerations")


def check_job(obj: Partial[Job]) -> Iterator[FieldError]:
    yield from _check_spec(obj.view.spec, obj.document["spec"], _SPEC)
    yield from _check_selector(obj)


def check_job_update(new: Partial[Job], old: Partial[Job]) -> Iterator[FieldError]:
    spec, before = new.document["spec"], old.document["spec"]
    elastic = new.view.spec.completion_mode == _INDEXED and new.view.spec.completions == new.view.spec.parallelism
    if spec.get("completions") != before.get("completions") and not elastic:
        yield invalid(_SPEC / "completions", spec.get("completions"), IMMUTABLE)
    if spec.get("selector") != before.get("selector"):
        yield invalid(_SPEC / "selector", spec.get("selector"), IMMUTABLE)
    begun = before.get("suspend") is not True or (old.document.get("status") or {}).get("startTime")
    template, template_before = spec.get("template") or {}, before.get("template") or {}
    if begun and template != template_before:
        yield invalid(_SPEC / "template", template, IMMUTABLE)
    elif not begun and _fixed_parts(template) != _fixed_parts(template_before):
        yield invalid(_SPEC / "template" / "spec", template.get("spec"), IMMUTABLE)
    for name in _FIXED:
        if spec.get(name) != before.get(name):
            yield invalid(_SPEC / name, spec.get(name), IMMUTABLE)


def _fixed_parts(template: Mapping[str, Any]) -> dict[str, Any]:
    """What stays of a template although its job has not begun: all but what says where its pods go."""
    spec = {name: each for name, each in (template.get("spec") or {}).items() if name not in _PLACEMENT}
    containers = [{**each, "resources": None} for each in spec.get("containers") or ()]
    initial = [{**each, "resources": None} for each in spec.get("initContainers") or ()]
    return {**spec, "containers": containers, "initContainers": initial}


def check_cron_job(obj: Partial[CronJob]) -> Iterator[FieldError]:
    spec, document = obj.view.spec, obj.document["spec"]
    if len(obj.view.metadata.name) > _LONGEST_CRON_NAME:
        # Eleven characters are added to the name of each job.
        yield invalid(Path("metadata.name"), obj.view.metadata.name, "must be no more than 52 characters")
    if not spec.schedule:
        yield required(_SPEC / "schedule")
    else:
        try:
            parse_schedule(spec.schedule)
        except CronError as error:
            yield invalid(_SPEC / "schedule", spec.schedule, str(error))
    yield from _check_zone(document.get("timeZone"))
    if spec.concurrency_policy not in ("Allow", "Forbid", "Replace"):
        yield not_supported(_SPEC / "concurrencyPolicy", spec.concurrency_policy, ("Allow", "Forbid", "Replace"))
    for name in ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        if (value := document.get(name)) is not None and value < 0:
            yield invalid(_SPEC / name, value, _NOT_NEGATIVE)
    inner = _SPEC / "jobTemplate" / "spec"
    yield from _check_spec(spec.job_template.spec, document["jobTemplate"]["spec"], inner)


def _check_zone(name: str | None) -> Iterator[FieldError]:
    if name is None:
        return
    if not name:
        yield invalid(_SPEC / "timeZone", name, "timeZone must be nil or non-empty string")
    elif name.lower() == "local":
        yield invalid(
            _SPEC / "timeZone", name, "timeZone must be an explicit time zone as defined in the IANA database"
        )
    else:
        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            yield invalid(_SPEC / "timeZone", name, f"unknown time zone {name}")


def _check_selector(obj: Partial[Job]) -> Iterator[FieldError]:
    spec, labels = obj.view.spec, obj.view.spec.template.metadata.labels
    if spec.selector is None:
        # The server makes one, unless the job says that it brings its own.
        if spec.manual_selector:
            yield required(_SPEC / "selector")
    elif any(labels.get(key) != value for key, value in spec.selector.match_labels.items()):
        at = _SPEC / "template" / "metadata" / "labels"
        yield invalid(at, dict(labels), "`selector` does not match template `labels`")


def _check_spec(spec: JobSpec, document: dict[str, Any], path: Path) -> Iterator[FieldError]:
    for name in _NUMBERS:
        if (value := document.get(name)) is not None and value < 0:
            yield invalid(path / name, value, _NOT_NEGATIVE)
    if spec.max_failed_indexes is not None and spec.backoff_limit_per_index is None:
        yield required(path / "backoffLimitPerIndex", "when maxFailedIndexes is specified")
    yield from check_manager(spec.managed_by, path / "managedBy")
    yield from _check_mode(spec, path)
    for index, rule in enumerate(spec.pod_failure_policy.rules if spec.pod_failure_policy else ()):
        yield from _check_rule(spec, rule, (path / "podFailurePolicy" / "rules")[index])
    if spec.pod_failure_policy and len(spec.pod_failure_policy.rules) > _MOST_RULES:
        yield too_many(path / "podFailurePolicy" / "rules", len(spec.pod_failure_policy.rules), _MOST_RULES)
    yield from _check_replacement(spec, path)
    yield from check_labels(spec.template.metadata.labels, path / "template" / "labels")
    yield from check_pod_spec(spec.template.spec, path / "template" / "spec")
    yield from check_pod_details(document["template"].get("spec") or {}, path / "template" / "spec")
    yield from _check_restarts(spec, path / "template" / "spec" / "restartPolicy")


def _check_mode(spec: JobSpec, path: Path) -> Iterator[FieldError]:
    mode = spec.completion_mode or "NonIndexed"
    if mode not in ("NonIndexed", _INDEXED):
        yield not_supported(path / "completionMode", mode, ("NonIndexed", _INDEXED))
    elif mode == _INDEXED:
        yield from _check_indexes(spec, path)
    else:
        given = (
            ("backoffLimitPerIndex", spec.backoff_limit_per_index),
            ("maxFailedIndexes", spec.max_failed_indexes),
            ("successPolicy", spec.success_policy),
        )
        for name, value in given:
            if value is not None:
                yield invalid(path / name, value if isinstance(value, int) else {}, _NEEDS_INDEXES)


def _check_indexes(spec: JobSpec, path: Path) -> Iterator[FieldError]:
    if spec.completions is None:
        yield required(path / "completions", f"when completion mode is {_INDEXED}")
    if spec.parallelism is not None and spec.parallelism > _MOST_INDEXES:
        detail = f"must be less than or equal to {_MOST_INDEXES} when completion mode is {_INDEXED}"
        yield invalid(path / "parallelism", spec.parallelism, detail)
    most = spec.max_failed_indexes
    if most is not None and spec.completions is not None and most > spec.completions:
        yield invalid(path / "maxFailedIndexes", most, "must be less than or equal to completions")
    if spec.success_policy is not None and spec.completions is not None:
        yield from check_success_policy(spec.success_policy, spec.completions, path / "successPolicy")


def _check_rule(spec: JobSpec, rule: PodFailurePolicyRule, path: Path) -> Iterator[FieldError]:
    if not rule.action:
        yield required(path / "action", f"valid values: {_quoted(_ACTIONS)}")
    elif rule.action not in _ACTIONS:
        yield not_supported(path / "action", rule.action, _ACTIONS)
    elif rule.action == "FailIndex" and spec.backoff_limit_per_index is None:
        yield invalid(path / "action", rule.action, "requires the backoffLimitPerIndex to be set")
    if rule.on_exit_codes is not None and rule.on_pod_conditions:
        yield invalid(path, None, "specifying both OnExitCodes and OnPodConditions is not supported")
    if rule.on_exit_codes is None and not rule.on_pod_conditions:
        yield invalid(path, None, "specifying one of OnExitCodes and OnPodConditions is required")
    if rule.on_exit_codes is not None:
        yield from _check_codes(spec, rule, path / "onExitCodes")
    for index, pattern in enumerate(rule.on_pod_conditions):
        where = (path / "onPodConditions")[index]
        yield from (invalid(where / "type", pattern.type, text) for text in names.check_label_key(pattern.type))
        if pattern.status not in _STATUSES:
            yield not_supported(where / "status", pattern.status, _STATUSES)


def _check_codes(spec: JobSpec, rule: PodFailurePolicyRule, path: Path) -> Iterator[FieldError]:
    codes = rule.on_exit_codes
    if codes is None:
        return
    if codes.operator not in ("In", "NotIn"):
        yield not_supported(path / "operator", codes.operator, ("In", "NotIn"))
    pod = spec.template.spec
    if codes.container_name is not None and codes.container_name not in {
        each.name for each in (*pod.containers, *pod.init_containers)
    }:
        detail = "must be one of the container or initContainer names in the pod template"
        yield invalid(path / "containerName", codes.container_name, detail)
    if not codes.values:
        yield invalid(path / "values", [], "at least one value is required")
    for index, value in enumerate(codes.values):
        if codes.operator == "In" and value == 0:
            yield invalid((path / "values")[index], value, "must not be 0 for the In operator")
        if value in codes.values[:index]:
            yield duplicate((path / "values")[index], value)
    if list(codes.values) != sorted(codes.values):
        yield invalid(path / "values", list(codes.values), "must be ordered")


def _check_replacement(spec: JobSpec, path: Path) -> Iterator[FieldError]:
    policy = spec.pod_replacement_policy
    if policy is None:
        return
    allowed = ("Failed",) if spec.pod_failure_policy is not None else ("Failed", "TerminatingOrFailed")
    if policy not in allowed:
        yield not_supported(path / "podReplacementPolicy", policy, allowed)


def _check_restarts(spec: JobSpec, path: Path) -> Iterator[FieldError]:
    policy = spec.template.spec.restart_policy
    if policy in ("", "Always"):
        yield required(path, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield not_supported(path, policy, ("OnFailure", "Never"))
    elif spec.pod_failure_policy is not None and policy != "Never":
        yield invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')


def _quoted(words: tuple[str, ...]) -> str:
    return "[" + " ".join(f'"{word}"' for word in words) + "]"
