"""What must hold for mutating policies and their bindings.

In:  a policy or a binding, as it is to be stored.
Out: every error with its path; expressions are compiled, so that a policy that is stored can be run.
"""

from __future__ import annotations

from collections.abc import Iterator

from drakit.apiserver.admission.criteria.patchtypes import JSON_PATCHES, OBJECT
from drakit.apiserver.admission.criteria.registrations import (
    IF_NEEDED,
    BindingSpec,
    MatchResources,
    MutatingPolicySpec,
    Mutation,
    PatchExpression,
)
from drakit.apiserver.admission.criteria.validation import check_conditions
from drakit.apiserver.admission.policies.mutations import APPLY_CONFIGURATION, JSON_PATCH
from drakit.apiserver.admission.policies.validation import SPEC, PolicyExpressions, check_bound, check_constraints
from drakit.base.fields import FieldError, Path, invalid, not_supported, required
from drakit.cel import Type

OPERATIONS = ("*", "CONNECT", "CREATE", "UPDATE")
REINVOCATION_POLICIES = (IF_NEEDED, "Never")
PATCH_TYPES = (APPLY_CONFIGURATION, JSON_PATCH)
_FIELDS = {APPLY_CONFIGURATION: "applyConfiguration", JSON_PATCH: "jsonPatch"}


def check_mutating_policy(spec: MutatingPolicySpec, *, constrained: bool) -> Iterator[FieldError]:
    yield from check_constraints(spec, constrained=constrained)
    yield from _check_operations(spec.match_constraints, SPEC / "matchConstraints")
    params = spec.param_kind is not None
    yield from check_conditions(spec.match_conditions, SPEC / "matchConditions", params=params)
    expressions = PolicyExpressions(params=params)
    yield from expressions.check_variables(spec.variables)
    if not spec.mutations:
        yield required(SPEC / "mutations", "mutations must contain at least one item")
    for index, mutation in enumerate(spec.mutations):
        yield from _check_mutation(mutation, (SPEC / "mutations")[index], expressions)
    if not spec.reinvocation_policy:
        yield required(SPEC / "reinvocationPolicy")
    elif spec.reinvocation_policy not in REINVOCATION_POLICIES:
        yield not_supported(SPEC / "reinvocationPolicy", spec.reinvocation_policy, REINVOCATION_POLICIES)


def check_mutating_binding(spec: BindingSpec) -> Iterator[FieldError]:
    yield from check_bound(spec)
    if spec.match_resources is not None:
        yield from _check_operations(spec.match_resources, SPEC / "matchResources")


def _check_operations(criteria: MatchResources, path: Path) -> Iterator[FieldError]:
    """Deletions have no object that could be changed."""
    for rule in criteria.resource_rules:
        for operation in rule.operations:
            if operation not in OPERATIONS:
                yield not_supported(path / "resourceRules" / "operations", operation, OPERATIONS)


def _check_mutation(mutation: Mutation, path: Path, expressions: PolicyExpressions) -> Iterator[FieldError]:
    if not mutation.patch_type:
        yield required(path / "patchType")
        return
    if mutation.patch_type not in PATCH_TYPES:
        yield not_supported(path / "patchType", mutation.patch_type, PATCH_TYPES)
        return
    given: dict[str, tuple[PatchExpression | None, Type]] = {
        APPLY_CONFIGURATION: (mutation.apply_configuration, OBJECT),
        JSON_PATCH: (mutation.json_patch, JSON_PATCHES),
    }
    wanted, field = given.pop(mutation.patch_type), _FIELDS[mutation.patch_type]
    if wanted[0] is None:
        yield required(path / field, f"must be specified when patchType is {mutation.patch_type}")
    else:
        yield from _check_expression(wanted[0], wanted[1], path / field / "expression", expressions)
    for other, (unwanted, _) in given.items():
        if unwanted is not None:
            why = f"must not be specified when patchType is {mutation.patch_type}"
            yield invalid(path / _FIELDS[other], f"{{{_FIELDS[other]}}}", why)


def _check_expression(
    given: PatchExpression, wanted: Type, path: Path, expressions: PolicyExpressions
) -> Iterator[FieldError]:
    text = given.expression.strip()
    if not text:
        yield required(path)
    else:
        yield from expressions.compiles(text, (wanted,), path, patches=True)
