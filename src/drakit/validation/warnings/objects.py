"""Warnings by kind: the one place that the API server and lint ask.

In:  an object that is valid, in its internal form, and the switches.
Out: what is allowed in it and yet will not do what its author hopes. Pure.

A kind gets warnings of its own by an entry in `_RULES`. The recorded server gives none of them: the API server says
them only behind its switch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from drakit.api import (
    DeviceClass,
    DeviceTaintRule,
    Partial,
    Pod,
    PodGroup,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourcePoolStatusRequest,
    ResourceSlice,
    Workload,
)
from drakit.base.fields import Path
from drakit.base.gates import FeatureGates
from drakit.base.structs import Model
from drakit.validation.warnings.claims import warn_of_claim, warn_of_template
from drakit.validation.warnings.findings import FieldWarning
from drakit.validation.warnings.pods import warn_of_pod
from drakit.validation.warnings.slices import warn_of_slice

Object = Model | Partial[Any]
Warnings = Iterator[FieldWarning]
Rule = Callable[[Any, FeatureGates], Warnings]

MOST_WARNINGS = 20
"""More headers than this help nobody."""


def warnings_about(new: Object, old: Object | None, gates: FeatureGates) -> tuple[FieldWarning, ...]:
    """What there is to say of `new`, and was not to say of `old` already."""
    rule = _RULES.get(model_of(new))
    if rule is None:
        return ()
    known = set(rule(old, gates)) if old is not None else set()
    fresh = (each for each in dict.fromkeys(rule(new, gates)) if each not in known)
    return tuple(islice(fresh, MOST_WARNINGS))


def has_warnings(model: type[Model]) -> bool:
    """Whether there is anything to say of objects of this kind."""
    return model in _RULES


def model_of(obj: Object) -> type[Model]:
    return type(obj.view) if isinstance(obj, Partial) else type(obj)


def _inert_without(gate: str, what: str) -> Rule:
    """Objects that are stored, and that nobody acts on while their gate is off."""

    def rule(_: Any, gates: FeatureGates) -> Warnings:
        if not gates.enabled(gate):
            yield FieldWarning("inert-object", Path(), f"{what}: the feature gate {gate} is off")

    return rule


def _nothing(_: Any, __: FeatureGates) -> Warnings:
    """For kinds of which at most dropped fields are told."""
    return iter(())


_RULES: Mapping[type[Model], Rule] = {
    ResourceClaim: warn_of_claim,
    ResourceClaimTemplate: warn_of_template,
    ResourceSlice: warn_of_slice,
    DeviceClass: _nothing,
    Pod: warn_of_pod,
    DeviceTaintRule: _inert_without("DRADeviceTaintRules", "this rule taints nothing"),
    ResourcePoolStatusRequest: _inert_without("DRAResourcePoolStatus", "this request is not answered"),
    PodGroup: _inert_without("GenericWorkload", "this group is not scheduled as one"),
    Workload: _inert_without("GenericWorkload", "this workload makes no groups"),
}
