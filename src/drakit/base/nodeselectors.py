"""Node selectors: which nodes an allocation, a slice or a pod may use.

Terms are alternatives; the requirements of one term all hold. A term without requirements, and a selector without
terms, match nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from drakit.base.structs import Model

IN = "In"
NOT_IN = "NotIn"
EXISTS = "Exists"
DOES_NOT_EXIST = "DoesNotExist"
GT = "Gt"
LT = "Lt"
OPERATORS = (IN, NOT_IN, EXISTS, DOES_NOT_EXIST, GT, LT)
NAME_FIELD = "metadata.name"


class NodeSelectorRequirement(Model):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Model):
    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Model):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


def matches(selector: NodeSelector, *, name: str, labels: Mapping[str, str]) -> bool:
    """Whether a node of that name and with these labels is selected."""
    return any(matches_term(term, name=name, labels=labels) for term in selector.node_selector_terms)


def matches_term(term: NodeSelectorTerm, *, name: str, labels: Mapping[str, str]) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    return all(matches_requirement(each, labels) for each in term.match_expressions) and all(
        _matches_field(each, name) for each in term.match_fields
    )


def matches_requirement(requirement: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    """One requirement on labels. What is malformed matches nothing: an unknown operator, values too many or missing."""
    value, values = labels.get(requirement.key), requirement.values
    match requirement.operator:
        case "In":
            return value is not None and value in values
        case "NotIn":
            return bool(values) and (value is None or value not in values)
        case "Exists":
            return value is not None and not values
        case "DoesNotExist":
            return value is None and not values
        case "Gt" | "Lt":
            return value is not None and _compares(requirement, value)
        case _:
            return False


def _compares(requirement: NodeSelectorRequirement, value: str) -> bool:
    if len(requirement.values) != 1:
        return False
    ours, theirs = integer(value), integer(requirement.values[0])
    if ours is None or theirs is None:
        return False
    return ours > theirs if requirement.operator == GT else ours < theirs


def _matches_field(requirement: NodeSelectorRequirement, name: str) -> bool:
    """The name is the only field; it takes In and NotIn with one value."""
    if requirement.key != NAME_FIELD or len(requirement.values) != 1:
        return False
    if requirement.operator == IN:
        return requirement.values[0] == name
    return requirement.operator == NOT_IN and requirement.values[0] != name


def integer(text: str) -> int | None:
    """A 64-bit decimal as Go reads it: a sign and ASCII digits, nothing else."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits or len(digits) > 40 or not (digits.isascii() and digits.isdecimal()):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
