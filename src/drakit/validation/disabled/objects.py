"""Fields whose feature is switched off: gone from new objects, kept where they were in use.

In:  an object as a client sent it, the object before (None when it is made), the switches.
Out: the object that is validated and stored; the same object when nothing had to go.

A feature counts as in use when the object before has any of its fields: an update that has nothing to do with it must
not take it away.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from msgspec.structs import replace

from drakit.api import (
    DeviceClass,
    Partial,
    Pod,
    PodGroup,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
    Workload,
)
from drakit.base.gates import FeatureGates
from drakit.base.structs import Model
from drakit.validation.disabled.claims import drop_claim_fields, drop_template_fields
from drakit.validation.disabled.pods import drop_pod_fields
from drakit.validation.disabled.slices import drop_slice_fields

O = TypeVar("O", bound="Model | Partial[Any]")  # noqa: E741 - an object
Drop = Callable[[Any, Any, FeatureGates], Any]


def drop_disabled_fields(new: O, old: O | None, gates: FeatureGates) -> O:
    """`new` without the fields of features that are off and that `old` does not use."""
    rule = _RULES.get(type(new.view) if isinstance(new, Partial) else type(new))
    dropped: O = rule(new, old, gates) if rule else new
    return dropped


def _drop_class_fields(new: DeviceClass, old: DeviceClass | None, gates: FeatureGates) -> DeviceClass:
    # A field in use stays after its gate is turned off: else an unrelated update would remove it.
    in_use = old is not None and old.spec.extended_resource_name is not None
    if gates.enabled("DRAExtendedResource") or in_use or new.spec.extended_resource_name is None:
        return new
    return replace(new, spec=replace(new.spec, extended_resource_name=None))


def _drop_group_fields(new: PodGroup, old: PodGroup | None, gates: FeatureGates) -> PodGroup:
    in_use = old is not None and bool(old.spec.resource_claims)
    if gates.enabled("DRAWorkloadResourceClaims") or in_use:
        return new
    return replace(
        new,
        spec=replace(new.spec, resource_claims=()),
        status=replace(new.status, resource_claim_statuses=()),
    )


def _drop_workload_fields(new: Workload, old: Workload | None, gates: FeatureGates) -> Workload:
    in_use = old is not None and any(template.resource_claims for template in old.spec.pod_group_templates)
    if gates.enabled("DRAWorkloadResourceClaims") or in_use:
        return new
    templates = tuple(replace(template, resource_claims=()) for template in new.spec.pod_group_templates)
    return replace(new, spec=replace(new.spec, pod_group_templates=templates))


_RULES: Mapping[type[Model], Drop] = {
    ResourceClaim: drop_claim_fields,
    ResourceClaimTemplate: drop_template_fields,
    ResourceSlice: drop_slice_fields,
    DeviceClass: _drop_class_fields,
    PodGroup: _drop_group_fields,
    Workload: _drop_workload_fields,
    Pod: drop_pod_fields,
}
