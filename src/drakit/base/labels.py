"""Label selectors: as structs in specs, and as the text of a query (`app=web,tier in (a,b),!old`).

In:  text or a LabelSelector.
Out: requirements that match a map of labels, and print again as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from drakit.base import names
from drakit.base.errors import UsageError
from drakit.base.fields import quote
from drakit.base.nodeselectors import integer
from drakit.base.structs import Model

_STRUCT_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}
_BINARY_OPERATORS = ("in", "notin", "=", "==", "!=", "gt", "lt")
_TOKEN = re.compile(r"[ \t\r\n]*(?:(==|!=|[=!<>(),])|([^=!<>(),\s]+))")


class LabelSelectorRequirement(Model):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Model):
    """An empty selector selects everything; no selector at all selects nothing: that is the caller's to know."""

    match_labels: Mapping[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


@dataclass(frozen=True, slots=True)
class Requirement:
    key: str
    operator: str  # in notin = == != gt lt exists !
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "in" | "=" | "==":
                return value is not None and value in self.values
            case "notin" | "!=":
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
            case _:
                return value is not None and self._compares(value)

    def _compares(self, value: str) -> bool:
        ours, theirs = integer(value), integer(self.values[0])
        if ours is None or theirs is None:
            return False
        return ours > theirs if self.operator == "gt" else ours < theirs

    def __str__(self) -> str:
        values = ",".join(sorted(self.values))
        match self.operator:
            case "exists":
                return self.key
            case "!":
                return f"!{self.key}"
            case "in" | "notin":
                return f"{self.key} {self.operator} ({values})"
            case "gt" | "lt":
                return f"{self.key}{'>' if self.operator == 'gt' else '<'}{values}"
            case _:
                return f"{self.key}{self.operator}{values}"


@dataclass(frozen=True, slots=True)
class Selector:
    """All requirements hold; none means everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(each.matches(labels) for each in self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


EVERYTHING = Selector()


def from_struct(selector: LabelSelector) -> Selector:
    """Raise UsageError for an operator that nobody knows."""
    requirements = [Requirement(key, "=", (value,)) for key, value in sorted(selector.match_labels.items())]
    for each in selector.match_expressions:
        if each.operator not in _STRUCT_OPERATORS:
            raise UsageError(f"{quote(each.operator)} is not a valid label selector operator")
        requirements.append(_checked(each.key, _STRUCT_OPERATORS[each.operator], each.values))
    return Selector(tuple(requirements))


def parse(text: str) -> Selector:
    """Read a query's selector; raise UsageError in Kubernetes' words."""
    return Selector(tuple(sorted(_Parser(text).requirements(), key=lambda each: each.key)))


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens = list(_scan(text))
        self.position = 0

    def peek(self) -> str:
        return self.tokens[self.position]

    def take(self) -> str:
        token = self.tokens[self.position]
        self.position = min(self.position + 1, len(self.tokens) - 1)
        return token

    def requirements(self) -> Iterator[Requirement]:
        while self.peek():
            if not _is_word(self.peek()) and self.peek() != "!":
                raise UsageError(f"found '{self.peek()}', expected: !, identifier, or 'end of string'")
            yield self.requirement()
            end = self.take()
            if not end:
                return
            if end != ",":
                raise UsageError(f"found '{end}', expected: ',' or 'end of string'")
            if not _is_word(self.peek()) and self.peek() != "!":
                raise UsageError(f"found '{self.peek()}', expected: identifier after ','")

    def requirement(self) -> Requirement:
        absent = self.peek() == "!"
        if absent:
            self.take()
        key = self.take()
        if not _is_word(key):
            raise _unparsed(f"found '{key}', expected: identifier")
        if absent or self.peek() in ("", ","):
            if absent and self.peek() not in ("", ","):
                raise _unparsed(f"found '{self.peek()}', expected: {', '.join(_BINARY_OPERATORS)}")
            return _checked(key, "!" if absent else "exists", ())
        operator = {">": "gt", "<": "lt"}.get(self.peek(), self.peek())
        if operator not in _BINARY_OPERATORS or self.peek() in ("gt", "lt"):
            raise _unparsed(f"found '{self.peek()}', expected: {', '.join(_BINARY_OPERATORS)}")
        self.take()
        return _checked(key, operator, self.value_set() if operator in ("in", "notin") else (self.exact_value(),))

    def exact_value(self) -> str:
        if self.peek() in ("", ","):
            return ""
        if not _is_word(self.peek()):
            raise _unparsed(f"found '{self.peek()}', expected: identifier")
        return self.take()

    def value_set(self) -> tuple[str, ...]:
        if (opening := self.take()) != "(":
            raise _unparsed(f"found '{opening}' expected: '('")
        values = [self.set_member()]
        while self.peek() == ",":
            self.take()
            values.append(self.set_member())
        if (closing := self.take()) != ")":
            raise _unparsed(f"found '{closing}', expected: ',' or ')'")
        return tuple(dict.fromkeys(values))

    def set_member(self) -> str:
        return self.take() if _is_word(self.peek()) else ""


def _scan(text: str) -> Iterator[str]:
    """Symbols and words; an empty string stands for the end."""
    position = 0
    while found := _TOKEN.match(text, position):
        yield found[1] or found[2]
        position = found.end()
    yield ""


def _is_word(token: str) -> bool:
    return bool(token) and token[0] not in "=!<>(),"


def _unparsed(reason: str) -> UsageError:
    return UsageError(f"unable to parse requirement: {reason}")


def _checked(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    """Keys and values must have the form of labels: others could never match."""
    problems = [
        f"key: Invalid value: {quote(key)}: {'; '.join(found)}" for found in [names.check_label_key(key)] if found
    ]
    if operator in ("in", "notin") and not values:
        problems.append("values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty")
    if operator in ("exists", "!") and values:
        problems.append("values: Invalid value: values set must be empty for exists and does not exist")
    if operator in ("gt", "lt") and integer(values[0]) is None:
        problems.append(
            f"values[0]: Invalid value: {quote(values[0])}: for 'Gt', 'Lt' operators, the value must be an integer"
        )
    for index, value in enumerate(values):
        if found := names.check_label_value(value):
            problems.append(f"values[{index}][{key}]: Invalid value: {quote(value)}: {'; '.join(found)}")
    if problems:
        raise _unparsed(problems[0] if len(problems) == 1 else "[" + ", ".join(problems) + "]")
    return Requirement(key, operator, values)
