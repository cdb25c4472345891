"""Node selectors, as slices, devices, allocations and pods have them."""

from __future__ import annotations

from collections.abc import Iterator

from drakit.base.fields import FieldError, Path, forbidden, invalid, required
from drakit.base.nodeselectors import (
    DOES_NOT_EXIST,
    EXISTS,
    GT,
    IN,
    LT,
    NAME_FIELD,
    NOT_IN,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from drakit.validation.fields.names import check_label_key, check_label_value, check_subdomain, is_subdomain
from drakit.validation.fields.sequences import each

_BAD_OPERATOR = "not a valid selector operator"


def names_one_node(selector: NodeSelector) -> bool:
    """Whether a selector asks for one node by its name, as allocations mostly do. Such a one breaks no rule."""
    terms = selector.node_selector_terms
    if len(terms) != 1 or terms[0].match_expressions or len(terms[0].match_fields) != 1:
        return False
    wanted = terms[0].match_fields[0]
    return (wanted.key, wanted.operator, len(wanted.values)) == (NAME_FIELD, IN, 1) and is_subdomain(wanted.values[0])


def check_node_selector(selector: NodeSelector, path: Path) -> Iterator[FieldError]:
    terms = path / "nodeSelectorTerms"
    if not selector.node_selector_terms:
        yield required(terms, "must have at least one node selector term")
    yield from each(selector.node_selector_terms, terms, check_term)


def check_term(term: NodeSelectorTerm, path: Path) -> Iterator[FieldError]:
    if term.match_expressions:
        yield from each(term.match_expressions, path / "matchExpressions", _check_expression)
    if term.match_fields:
        yield from each(term.match_fields, path / "matchFields", _check_field)


def _check_expression(requirement: NodeSelectorRequirement, path: Path) -> Iterator[FieldError]:
    yield from _check_operator(requirement, path)
    yield from check_label_key(requirement.key, path / "key")
    yield from each(requirement.values, path / "values", check_label_value)


def _check_operator(requirement: NodeSelectorRequirement, path: Path) -> Iterator[FieldError]:
    """How many values go with the operator."""
    count = len(requirement.values)
    match requirement.operator:
        case "In" | "NotIn":
            if not count:
                yield required(path / "values", f"must be specified when `operator` is '{IN}' or '{NOT_IN}'")
        case "Exists" | "DoesNotExist":
            if count:
                detail = f"may not be specified when `operator` is '{EXISTS}' or '{DOES_NOT_EXIST}'"
                yield forbidden(path / "values", detail)
        case "Gt" | "Lt":
            if count != 1:
                yield required(path / "values", f"must be specified single value when `operator` is '{LT}' or '{GT}'")
        case operator:
            yield invalid(path / "operator", operator, _BAD_OPERATOR)


def _check_field(requirement: NodeSelectorRequirement, path: Path) -> Iterator[FieldError]:
    if requirement.operator in (IN, NOT_IN):
        if len(requirement.values) != 1:
            detail = f"must be only one value when `operator` is '{IN}' or '{NOT_IN}' for node field selector"
            yield required(path / "values", detail)
    else:
        yield invalid(path / "operator", requirement.operator, _BAD_OPERATOR)
    if requirement.key != NAME_FIELD:
        yield invalid(path / "key", requirement.key, "not a valid field selector key")
        return
    for index, value in enumerate(requirement.values):
        if not is_subdomain(value):
            yield from check_subdomain(value, (path / "values")[index])
