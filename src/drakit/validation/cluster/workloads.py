"""Workload and PodGroup: pods that are scheduled together, and the claims that they share.

Neither spec changes after it was made. What did not change in a status is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from drakit.api import (
    PodGroup,
    PodGroupResourceClaim,
    PodGroupResourceClaimStatus,
    PodGroupSchedulingConstraints,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
    PodGroupStatus,
    PodGroupTemplate,
    PodGroupTemplateReference,
    TopologyConstraint,
    TypedLocalObjectReference,
    Workload,
    to_plain,
)
from drakit.base.fields import FieldError, Path, invalid, not_supported, required, too_many
from drakit.validation.context import Context
from drakit.validation.fields.conditions import check_conditions
from drakit.validation.fields.declared import (
    check_choice,
    check_long_name,
    check_path_segment,
    check_range,
    check_short_name,
)
from drakit.validation.fields.metadata import IMMUTABLE, check_metadata, check_metadata_update
from drakit.validation.fields.names import check_label_key
from drakit.validation.fields.sequences import each, each_once

TEMPLATES = 8
CLAIMS = 4
TOPOLOGIES = 1
HIGHEST_PRIORITY = 1_000_000_000
DISRUPTION_MODES = ("Pod", "PodGroup")
_SPEC = Path("spec")
_STATUS = Path("status")


def check_workload(workload: Workload, _ctx: Context) -> Iterator[FieldError]:
    yield from check_metadata(workload.metadata, namespaced=True)
    if workload.spec.controller_ref is not None:
        yield from _check_controller(workload.spec.controller_ref, _SPEC / "controllerRef")
    templates = _SPEC / "podGroupTemplates"
    if not workload.spec.pod_group_templates:
        yield required(templates)
    yield from each_once(
        workload.spec.pod_group_templates,
        templates,
        _check_template,
        lambda template: template.name,
        limit=TEMPLATES,
        show=to_plain,
    )


def check_workload_update(new: Workload, old: Workload, _ctx: Context) -> Iterator[FieldError]:
    yield from check_metadata_update(new.metadata, old.metadata)
    yield from _unchanged(new.spec.controller_ref, old.spec.controller_ref, _SPEC / "controllerRef")
    yield from _unchanged(new.spec.pod_group_templates, old.spec.pod_group_templates, _SPEC / "podGroupTemplates")


def check_pod_group(group: PodGroup, _ctx: Context) -> Iterator[FieldError]:
    yield from check_metadata(group.metadata, namespaced=True)
    if group.spec.pod_group_template_ref is not None:
        yield from _check_template_ref(group.spec.pod_group_template_ref, _SPEC / "podGroupTemplateRef")
    yield from _check_group(group.spec, _SPEC)


def check_pod_group_update(new: PodGroup, old: PodGroup, _ctx: Context) -> Iterator[FieldError]:
    yield from check_metadata_update(new.metadata, old.metadata)
    for name, attribute in (
        ("podGroupTemplateRef", "pod_group_template_ref"),
        ("schedulingPolicy", "scheduling_policy"),
        ("schedulingConstraints", "scheduling_constraints"),
        ("resourceClaims", "resource_claims"),
        ("disruptionMode", "disruption_mode"),
        ("priorityClassName", "priority_class_name"),
        ("priority", "priority"),
    ):
        yield from _unchanged(getattr(new.spec, attribute), getattr(old.spec, attribute), _SPEC / name)
    if len(new.spec.resource_claims) > max(CLAIMS, len(old.spec.resource_claims)):
        yield too_many(_SPEC / "resourceClaims", len(new.spec.resource_claims), CLAIMS)


def check_pod_group_status_update(new: PodGroup, old: PodGroup, _ctx: Context) -> Iterator[FieldError]:
    yield from check_metadata_update(new.metadata, old.metadata)
    if new.status.conditions != old.status.conditions:
        yield from check_conditions(new.status.conditions, _STATUS / "conditions")
    if new.status.resource_claim_statuses != old.status.resource_claim_statuses:
        yield from _check_claim_statuses(new.status, new.spec.resource_claims)


def _unchanged(new: Any, old: Any, path: Path) -> Iterator[FieldError]:
    if new != old:
        yield invalid(path, None, IMMUTABLE)


def _check_controller(controller: TypedLocalObjectReference, path: Path) -> Iterator[FieldError]:
    if controller.api_group:
        yield from check_long_name(controller.api_group, path / "apiGroup")
    for name, value in (("kind", controller.kind), ("name", controller.name)):
        if not value:
            yield required(path / name)
        else:
            yield from check_path_segment(value, path / name)


def _check_template(template: PodGroupTemplate, path: Path) -> Iterator[FieldError]:
    yield from _check_short(template.name, path / "name")
    yield from _check_group(template, path)


def _check_group(group: PodGroupSpec | PodGroupTemplate, path: Path) -> Iterator[FieldError]:
    """What groups and their templates have in common."""
    yield from _check_policy(group.scheduling_policy, path / "schedulingPolicy")
    if group.scheduling_constraints is not None:
        yield from _check_topology(group.scheduling_constraints, path / "schedulingConstraints")
    yield from each_once(
        group.resource_claims,
        path / "resourceClaims",
        _check_claim,
        lambda claim: claim.name,
        limit=CLAIMS,
        show=to_plain,
    )
    if group.disruption_mode is not None and group.disruption_mode not in DISRUPTION_MODES:
        yield not_supported(path / "disruptionMode", group.disruption_mode, DISRUPTION_MODES)
    if group.priority_class_name:
        yield from check_long_name(group.priority_class_name, path / "priorityClassName")
    yield from check_range(group.priority, path / "priority", most=HIGHEST_PRIORITY)


def _check_policy(policy: PodGroupSchedulingPolicy, path: Path) -> Iterator[FieldError]:
    yield from check_choice({"basic": policy.basic, "gang": policy.gang}, path)
    if policy.gang is not None:
        count = path / "gang" / "minCount"
        if policy.gang.min_count == 0:
            yield required(count)
        else:
            yield from check_range(policy.gang.min_count, count, least=1)


def _check_topology(constraints: PodGroupSchedulingConstraints, path: Path) -> Iterator[FieldError]:
    def check(constraint: TopologyConstraint, where: Path) -> Iterator[FieldError]:
        if not constraint.key:
            yield required(where / "key")
        else:
            yield from check_label_key(constraint.key, where / "key")

    yield from each(constraints.topology, path / "topology", check, limit=TOPOLOGIES)


def _check_claim(claim: PodGroupResourceClaim, path: Path) -> Iterator[FieldError]:
    by_name, by_template = claim.resource_claim_name, claim.resource_claim_template_name
    yield from check_choice({"resourceClaimName": by_name, "resourceClaimTemplateName": by_template}, path)
    yield from _check_short(claim.name, path / "name")
    if by_name is not None:
        yield from check_long_name(by_name, path / "resourceClaimName")
    if by_template is not None:
        yield from check_long_name(by_template, path / "resourceClaimTemplateName")


def _check_template_ref(reference: PodGroupTemplateReference, path: Path) -> Iterator[FieldError]:
    yield from check_choice({"workload": reference.workload}, path)
    if reference.workload is None:
        return
    workload = path / "workload" / "workloadName"
    if not reference.workload.workload_name:
        yield required(workload)
    else:
        yield from check_long_name(reference.workload.workload_name, workload)
    yield from _check_short(reference.workload.pod_group_template_name, path / "workload" / "podGroupTemplateName")


def _check_claim_statuses(status: PodGroupStatus, claims: Sequence[PodGroupResourceClaim]) -> Iterator[FieldError]:
    """Names are compared in lists of any length: there are at most four to match."""
    known = {claim.name for claim in claims}
    path = _STATUS / "resourceClaimStatuses"

    def check(entry: PodGroupResourceClaimStatus, where: Path) -> Iterator[FieldError]:
        if entry.resource_claim_name is not None:
            yield from check_long_name(entry.resource_claim_name, where / "resourceClaimName")

    for index, entry in enumerate(status.resource_claim_statuses):
        if entry.name not in known:
            detail = "must match the name of an entry in `spec.resourceClaims`"
            yield invalid(path[index] / "name", entry.name, detail)
    yield from each_once(
        status.resource_claim_statuses,
        path,
        check,
        lambda entry: entry.name,
        limit=CLAIMS,
        show=to_plain,
    )


def _check_short(name: str, path: Path) -> Iterator[FieldError]:
    if not name:
        yield required(path)
    else:
        yield from check_short_name(name, path)
