"""What must hold for admission policies and their bindings.

In:  a policy or a binding, as it is to be stored.
Out: every error with its path; expressions are compiled, so that a policy that is stored can be run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from drakit.apiserver.admission.criteria.expressions import Declared, ExpressionInvalid, compile_expression
from drakit.apiserver.admission.criteria.registrations import (
    AuditAnnotation,
    BindingSpec,
    MutatingPolicySpec,
    ParamKind,
    ParamRef,
    PolicySpec,
    PolicyVariable,
    Validation,
)
from drakit.apiserver.admission.criteria.validation import (
    FAILURE_POLICIES,
    check_conditions,
    check_criteria,
    check_selector,
)
from drakit.base import names
from drakit.base.fields import FieldError, Path, duplicate, forbidden, invalid, not_supported, required
from drakit.cel import BOOL, DYN, STRING, Type
from drakit.cel.checking.types import NULL

ACTIONS = ("Audit", "Deny", "Warn")
REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
NOT_FOUND_ACTIONS = ("Allow", "Deny")
MAX_ANNOTATIONS = 20
MAX_VALUE_EXPRESSION = 5 * 1024
SPEC = Path("spec")
_IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
_RESERVED = frozenset(
    (
        "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop",
        "namespace", "null", "package", "return", "true", "var", "void", "while",
    )
)  # fmt: skip
_NOTHING = "validations or auditAnnotations must contain at least one item"


def check_policy(name: str, spec: PolicySpec, *, constrained: bool) -> Iterator[FieldError]:
    yield from check_constraints(spec, constrained=constrained)
    params = spec.param_kind is not None
    yield from check_conditions(spec.match_conditions, SPEC / "matchConditions", params=params)
    if not spec.validations and not spec.audit_annotations:
        yield required(SPEC / "validations", _NOTHING)
        yield required(SPEC / "auditAnnotations", _NOTHING)
    expressions = _ValidatingExpressions(params=params)
    yield from expressions.check_variables(spec.variables)
    yield from expressions.check(name, spec)


def check_constraints(spec: PolicySpec | MutatingPolicySpec, *, constrained: bool) -> Iterator[FieldError]:
    """What every policy says of itself: where it applies, its parameters, and what a failure leads to."""
    if spec.failure_policy not in FAILURE_POLICIES:
        yield not_supported(SPEC / "failurePolicy", spec.failure_policy, FAILURE_POLICIES)
    if spec.param_kind is not None:
        yield from _check_param_kind(spec.param_kind, SPEC / "paramKind")
    if not constrained:
        yield required(SPEC / "matchConstraints")
    else:
        yield from check_criteria(spec.match_constraints, SPEC / "matchConstraints")
        if not spec.match_constraints.resource_rules:
            yield required(SPEC / "matchConstraints" / "resourceRules")


class PolicyExpressions:
    """Checks a policy's expressions in order: each variable is known to all that come after it."""

    def __init__(self, *, params: bool) -> None:
        self._params = params
        self._declared: Declared = ()

    def check_variables(self, variables: tuple[PolicyVariable, ...]) -> Iterator[FieldError]:
        for index, variable in enumerate(variables):
            yield from self._variable(variable, (SPEC / "variables")[index])

    def _variable(self, variable: PolicyVariable, path: Path) -> Iterator[FieldError]:
        if not variable.name.strip():
            yield required(path / "name", "name is not specified")
        elif not _IDENTIFIER.fullmatch(variable.name) or variable.name in _RESERVED:
            yield invalid(path / "name", variable.name, "must be a valid CEL identifier")
        found: Type = DYN
        if not variable.expression.strip():
            yield required(path / "expression", "expression is not specified")
        else:
            try:
                found = compile_expression(
                    variable.expression, declared=self._declared, params=self._params
                ).result_type
            except ExpressionInvalid as error:
                yield invalid(path / "expression", variable.expression, str(error))
        self._declared = (*self._declared, (variable.name, found))

    def compiles(
        self, text: str, wanted: tuple[Type, ...], path: Path, *, patches: bool = False
    ) -> Iterator[FieldError]:
        try:
            compile_expression(text, wanted, declared=self._declared, params=self._params, patches=patches)
        except ExpressionInvalid as error:
            yield invalid(path, text, str(error))


class _ValidatingExpressions(PolicyExpressions):
    def check(self, name: str, spec: PolicySpec) -> Iterator[FieldError]:
        for index, validation in enumerate(spec.validations):
            yield from self._validation(validation, (SPEC / "validations")[index])
        path = SPEC / "auditAnnotations"
        if len(spec.audit_annotations) > MAX_ANNOTATIONS:
            yield invalid(
                path, len(spec.audit_annotations), f"must not have more than {MAX_ANNOTATIONS} auditAnnotations"
            )
        keys = [each.key for each in spec.audit_annotations]
        for index, annotation in enumerate(spec.audit_annotations):
            yield from self._annotation(name, annotation, path[index])
            if annotation.key in keys[:index]:
                yield duplicate(path[index] / "key", annotation.key)

    def _validation(self, validation: Validation, path: Path) -> Iterator[FieldError]:
        if not validation.expression.strip():
            yield required(path / "expression", "expression is not specified")
        else:
            yield from self.compiles(validation.expression, (BOOL,), path / "expression")
        if validation.message_expression.strip():
            yield from self.compiles(validation.message_expression, (STRING,), path / "messageExpression")
        elif validation.message_expression:
            yield invalid(path / "messageExpression", validation.message_expression, "must be non-empty if specified")
        if validation.message and not validation.message.strip():
            yield invalid(path / "message", validation.message, "must be non-empty if specified")
        elif "\n" in validation.message.strip():
            yield invalid(path / "message", validation.message, "must not contain line breaks")
        if validation.reason is not None and validation.reason not in REASONS:
            yield not_supported(path / "reason", validation.reason, REASONS)

    def _annotation(self, name: str, annotation: AuditAnnotation, path: Path) -> Iterator[FieldError]:
        key = f"{name}/{annotation.key}"
        yield from (invalid(path / "key", key, message) for message in names.check_label_key(key))
        text = annotation.value_expression.strip()
        if not text:
            yield required(path / "valueExpression", "valueExpression is not specified")
        elif len(text.encode()) > MAX_VALUE_EXPRESSION:
            yield required(path / "valueExpression", f"must not exceed {MAX_VALUE_EXPRESSION} bytes in length")
        else:
            yield from self.compiles(text, (STRING, NULL), path / "valueExpression")


def _check_param_kind(kind: ParamKind, path: Path) -> Iterator[FieldError]:
    group, _, version = kind.api_version.rpartition("/")
    if not kind.api_version:
        yield required(path / "apiVersion")
    elif kind.api_version.count("/") > 1:
        yield invalid(path / "apiVersion", kind.api_version, f"unexpected GroupVersion string: {kind.api_version}")
    else:
        if group and (messages := names.check_dns_subdomain(group)):
            yield invalid(path / "apiVersion", group, ",".join(messages))
        if not version:
            yield invalid(path / "apiVersion", kind.api_version, "version must be specified")
        elif messages := names.check_dns1035_label(version):
            yield invalid(path / "apiVersion", version, ",".join(messages))
    if not kind.kind:
        yield required(path / "kind")
    elif messages := names.check_dns1035_label(kind.kind.lower()):
        why = "may have mixed case, but should otherwise match: " + ",".join(messages)
        yield invalid(path / "kind", kind.kind, why)


def check_binding(spec: BindingSpec) -> Iterator[FieldError]:
    yield from check_bound(spec)
    yield from _check_actions(spec.validation_actions, SPEC / "validationActions")


def check_bound(spec: BindingSpec) -> Iterator[FieldError]:
    """What every binding says: which policy, with which parameters, where."""
    if not spec.policy_name:
        yield required(SPEC / "policyName")
    else:
        messages = names.check_dns_subdomain(spec.policy_name)
        yield from (invalid(SPEC / "policyName", spec.policy_name, message) for message in messages)
    if spec.param_ref is not None:
        yield from _check_param_ref(spec.param_ref, SPEC / "paramRef")
    if spec.match_resources is not None:
        yield from check_criteria(spec.match_resources, SPEC / "matchResources")


def _check_actions(actions: tuple[str, ...], path: Path) -> Iterator[FieldError]:
    for index, action in enumerate(actions):
        if action not in ACTIONS:
            yield not_supported(path[index], action, ACTIONS)
        if action in actions[:index]:
            yield duplicate(path[index], action)
    if "Deny" in actions and "Warn" in actions:
        why = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the API "
            "response and headers serves no purpose)"
        )
        yield invalid(path, list(actions), why)
    if not actions:
        yield required(path, "at least one validation action is required")


def _check_param_ref(reference: ParamRef, path: Path) -> Iterator[FieldError]:
    exclusive = "name and selector are mutually exclusive"
    if reference.name:
        messages = names.check_path_segment(reference.name)
        yield from (invalid(path / "name", reference.name, message) for message in messages)
    if reference.name and reference.selector is not None:
        yield forbidden(path / "name", exclusive)
        yield forbidden(path / "selector", exclusive)
    if reference.selector is not None:
        yield from check_selector(reference.selector, path / "selector")
    elif not reference.name:
        yield required(path, "one of name or selector must be specified")
    if not reference.parameter_not_found_action:
        yield required(path / "parameterNotFoundAction")
    elif reference.parameter_not_found_action not in NOT_FOUND_ACTIONS:
        yield not_supported(path / "parameterNotFoundAction", reference.parameter_not_found_action, NOT_FOUND_ACTIONS)
