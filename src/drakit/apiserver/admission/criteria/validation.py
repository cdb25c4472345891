"""Validation of what policies and webhooks share: rules, selectors, match conditions.

In:  structs of the object that is written.
Out: every error with its path.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from drakit.apiserver.admission.criteria.expressions import ExpressionInvalid, compile_expression
from drakit.apiserver.admission.criteria.registrations import (
    EQUIVALENT,
    EXACT,
    FAIL,
    IGNORE,
    MatchCondition,
    MatchResources,
    RuleWithOperations,
)
from drakit.base import names
from drakit.base.fields import FieldError, Path, duplicate, invalid, not_supported, required, too_many
from drakit.base.labels import LabelSelector
from drakit.cel import BOOL

OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
SCOPES = ("*", "Cluster", "Namespaced")
FAILURE_POLICIES = (FAIL, IGNORE)
MATCH_POLICIES = (EQUIVALENT, EXACT)
MAX_CONDITIONS = 64
_SELECTOR_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def check_criteria(criteria: MatchResources, path: Path) -> Iterator[FieldError]:
    if criteria.match_policy not in MATCH_POLICIES:
        yield not_supported(path / "matchPolicy", criteria.match_policy, MATCH_POLICIES)
    yield from check_selector(criteria.namespace_selector, path / "namespaceSelector")
    yield from check_selector(criteria.object_selector, path / "objectSelector")
    for field, rules in (
        ("resourceRules", criteria.resource_rules),
        ("excludeResourceRules", criteria.exclude_resource_rules),
    ):
        for index, rule in enumerate(rules):
            where = (path / field)[index]
            yield from _check_names(rule.resource_names, where / "resourceNames")
            yield from check_rule(rule, where)


def _check_names(given: Sequence[str], path: Path) -> Iterator[FieldError]:
    for index, name in enumerate(given):
        yield from (invalid(path[index], name, message) for message in names.check_path_segment(name))
        if name in given[:index]:
            yield duplicate(path[index], name)


def check_rule(rule: RuleWithOperations, path: Path) -> Iterator[FieldError]:
    yield from _check_list(rule.operations, path / "operations", "operations")
    for index, operation in enumerate(rule.operations):
        if operation not in OPERATIONS:
            yield not_supported((path / "operations")[index], operation, OPERATIONS)
    yield from _check_list(rule.api_groups, path / "apiGroups", "API groups")
    yield from _check_list(rule.api_versions, path / "apiVersions", "API versions")
    yield from (required((path / "apiVersions")[at]) for at, version in enumerate(rule.api_versions) if not version)
    yield from _check_resources(rule.resources, path / "resources")
    if rule.scope not in SCOPES:
        yield not_supported(path / "scope", rule.scope, SCOPES)


def _check_list(items: Sequence[str], path: Path, what: str) -> Iterator[FieldError]:
    if not items:
        yield required(path)
    if len(items) > 1 and "*" in items:
        yield invalid(path, list(items), f"if '*' is present, must not specify other {what}")


def _check_resources(resources: Sequence[str], path: Path) -> Iterator[FieldError]:
    """Resources that a wildcard covers must not be listed as well."""
    if not resources:
        yield required(path)
    all_of, everywhere = set[str](), set[str]()
    for index, text in enumerate(resources):
        if not text:
            yield required(path[index])
            continue
        resource, slash, subresource = text.partition("/")
        if resource in all_of and slash:
            yield invalid(path[index], text, f"if '{resource}/*' is present, must not specify {text}")
        if subresource in everywhere and slash:
            yield invalid(path[index], text, f"if '*/{subresource}' is present, must not specify {text}")
        if subresource == "*":
            all_of.add(resource)
        if resource == "*" and slash:
            everywhere.add(subresource)
    if len(resources) > 1 and "*/*" in resources:
        yield invalid(path, list(resources), "if '*/*' is present, must not specify other resources")
    if "*" in resources and any("/" not in each and each != "*" for each in resources):
        why = "if '*' is present, must not specify other resources without subresources"
        yield invalid(path, list(resources), why)


def check_selector(selector: LabelSelector, path: Path) -> Iterator[FieldError]:
    for key, value in selector.match_labels.items():
        yield from (invalid(path / "matchLabels", key, message) for message in names.check_label_key(key))
        yield from (invalid(path / "matchLabels", value, message) for message in names.check_label_value(value))
    for index, each in enumerate(selector.match_expressions):
        where = (path / "matchExpressions")[index]
        yield from (invalid(where / "key", each.key, message) for message in names.check_label_key(each.key))
        if each.operator in ("In", "NotIn") and not each.values:
            yield required(where / "values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif each.operator in ("Exists", "DoesNotExist") and each.values:
            why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield invalid(where / "values", list(each.values), why)
        elif each.operator not in _SELECTOR_OPERATORS:
            yield invalid(where / "operator", each.operator, "not a valid selector operator")
        for at, value in enumerate(each.values):
            path_of = (where / "values")[at]
            yield from (invalid(path_of, value, message) for message in names.check_label_value(value))


def check_conditions(conditions: Sequence[MatchCondition], path: Path, *, params: bool = False) -> Iterator[FieldError]:
    if len(conditions) > MAX_CONDITIONS:
        yield too_many(path, len(conditions), MAX_CONDITIONS)
    seen = set[str]()
    for index, condition in enumerate(conditions):
        text = condition.expression.strip()
        if not text:
            yield required(path[index] / "expression")
        else:
            yield from _check_condition(text, path[index] / "expression", params=params)
        if not condition.name:
            yield required(path[index] / "name")
            continue
        messages = names.check_label_key(condition.name)
        yield from (invalid(path[index] / "name", condition.name, message) for message in messages)
        if condition.name in seen:
            yield duplicate(path[index] / "name", condition.name)
        seen.add(condition.name)


def _check_condition(text: str, path: Path, *, params: bool) -> Iterator[FieldError]:
    try:
        compile_expression(text, (BOOL,), params=params)
    except ExpressionInvalid as error:
        yield invalid(path, text, str(error))
