"""Label selectors: as structs in specs, and as the text of a query (`app=web,tier in (a,b),!old`).

In:  text or a LabelSelector.
Out: requirements that match a map of labels, and print again as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from drakit.base import names
from drakit.base.errors import UsageError, summary
from drakit.base.fields import FieldError, Path, invalid, quote
from drakit.base.nodeselectors import integer
from drakit.base.structs import Model

_STRUCT_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}
_FEW = 16
"""Requirements and values that are looked at one after the other. More are looked up."""
_BINARY_OPERATORS = ("in", "notin", "=", "==", "!=", "gt", "lt")
# Other kinds of space are part of a word, which no label is then: nothing of a query is passed over.
_TOKEN = re.compile(r"[ \t\r\n]*(?:(==|!=|[=!<>(),])|([^=!<>(), \t\r\n]+))")


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


class _KeyRules:
    """Everything that a selector requires of one key."""

    def __init__(self) -> None:
        self.required = False
        """Whether the label must be there."""
        self._refused: set[str] = set()
        self._allowed: set[str] | None = None
        self._absent = False
        self._comparisons: dict[str, Requirement] = {}

    def add(self, requirement: Requirement) -> None:
        match requirement.operator:
            case "!":
                self._absent = True
            case "notin" | "!=":
                self._refused.update(requirement.values)
            case "in" | "=" | "==":
                self.required = True
                allowed = set(requirement.values)
                self._allowed = allowed if self._allowed is None else self._allowed & allowed
            case operator:
                self.required = True
                if operator != "exists":
                    self._compare(requirement)

    def _compare(self, requirement: Requirement) -> None:
        """Of many bounds on one side the tightest counts; one that is no number fits nothing."""
        before = self._comparisons.get(requirement.operator, requirement)
        numbers = integer(before.values[0]), integer(requirement.values[0])
        if numbers[0] is None or numbers[1] is None:
            tighter = numbers[1] is None
        else:
            tighter = numbers[1] > numbers[0] if requirement.operator == "gt" else numbers[1] < numbers[0]
        self._comparisons[requirement.operator] = requirement if tighter else before

    def allow(self, value: str) -> bool:
        """Whether a label with this value may be there."""
        if self._absent or value in self._refused or (self._allowed is not None and value not in self._allowed):
            return False
        return all(each.matches({each.key: value}) for each in self._comparisons.values())


class _Index:
    """Many requirements, by key. Matching costs as much as an object has labels, however many of them there are."""

    def __init__(self, requirements: Iterable[Requirement]) -> None:
        self._rules: dict[str, _KeyRules] = {}
        for each in requirements:
            self._rules.setdefault(each.key, _KeyRules()).add(each)
        self._required = frozenset(key for key, rules in self._rules.items() if rules.required)

    def matches(self, labels: Mapping[str, str]) -> bool:
        if len(self._required) > len(labels) or not all(key in labels for key in self._required):
            return False
        rules = self._rules
        return all(key not in rules or rules[key].allow(value) for key, value in labels.items())


@dataclass(frozen=True, slots=True)
class LabelMatcher:
    """All requirements hold; none means everything."""

    requirements: tuple[Requirement, ...] = ()
    _index: _Index | None = field(init=False, compare=False, repr=False, default=None)

    def __post_init__(self) -> None:
        if len(self.requirements) + sum(len(each.values) for each in self.requirements) > _FEW:
            object.__setattr__(self, "_index", _Index(self.requirements))

    def matches(self, labels: Mapping[str, str]) -> bool:
        if self._index is not None:
            return self._index.matches(labels)
        return all(each.matches(labels) for each in self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


EVERYTHING = LabelMatcher()


def from_struct(selector: LabelSelector) -> LabelMatcher:
    """Raise UsageError for an operator that nobody knows, and for keys and values that can never match."""
    requirements = [_requirement(key, "=", (value,)) for key, value in selector.match_labels.items()]
    for each in selector.match_expressions:
        if each.operator not in _STRUCT_OPERATORS:
            raise UsageError(f"{quote(each.operator)} is not a valid label selector operator")
        requirements.append(_requirement(each.key, _STRUCT_OPERATORS[each.operator], each.values))
    return _sorted(requirements)


def parse(text: str) -> LabelMatcher:
    """Read a query's selector; raise UsageError in Kubernetes' words."""
    return _sorted(_Parser(text).requirements())


def _sorted(requirements: Iterable[Requirement]) -> LabelMatcher:
    return LabelMatcher(tuple(sorted(requirements, key=lambda each: each.key)))


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
            try:
                requirement = self.requirement()
            except UsageError as error:
                raise UsageError(f"unable to parse requirement: {error}") from None
            yield requirement
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
            raise UsageError(f"found '{key}', expected: identifier")
        _raise([invalid(Path(), key, "; ".join(found)) for found in [names.check_label_key(key)] if found])
        if absent or self.peek() in ("", ","):
            return _requirement(key, "!" if absent else "exists", ())
        sign = self.take()
        operator = {">": "gt", "<": "lt"}.get(sign, sign)
        if operator not in _BINARY_OPERATORS or sign in ("gt", "lt"):
            raise UsageError(f"found '{sign}', expected: {', '.join(_BINARY_OPERATORS)}")
        return _requirement(key, operator, self.value_set() if operator in ("in", "notin") else (self.exact_value(),))

    def exact_value(self) -> str:
        if self.peek() in ("", ","):
            return ""
        if not _is_word(self.peek()):
            raise UsageError(f"found '{self.peek()}', expected: identifier")
        return self.take()

    def value_set(self) -> tuple[str, ...]:
        if (opening := self.take()) != "(":
            raise UsageError(f"found '{opening}' expected: '('")
        if not _is_word(self.peek()) and self.peek() not in (",", ")"):
            raise UsageError(f"found '{self.peek()}', expected: ',', ')' or identifier")
        values = {self.set_member()}
        while (sign := self.take()) == ",":
            if not _is_word(self.peek()) and self.peek() not in (",", ")"):
                raise UsageError(f"found '{self.peek()}', expected: ',', or identifier")
            values.add(self.set_member())
        if sign != ")":
            raise UsageError(f"found '{sign}', expected: ',' or ')'")
        return tuple(sorted(values))

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


def _requirement(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    """Keys and values must have the form of labels: others could never match."""
    _raise(list(_problems(key, operator, values)))
    return Requirement(key, operator, values)


def _problems(key: str, operator: str, values: tuple[str, ...]) -> Iterator[FieldError]:
    path = Path("values")
    if found := names.check_label_key(key):
        yield invalid(Path("key"), key, "; ".join(found))
    if operator in ("in", "notin") and not values:
        yield invalid(path, None, "for 'in', 'notin' operators, values set can't be empty")
    if operator in ("exists", "!") and values:
        yield invalid(path, values, "values set must be empty for exists and does not exist")
    if operator in ("gt", "lt") and integer(values[0]) is None:
        yield invalid(path[0], values[0], "for 'Gt', 'Lt' operators, the value must be an integer")
    for index, value in enumerate(values):
        if found := names.check_label_value(value):
            yield invalid(path[index].key(key), value, "; ".join(found))


def _raise(problems: list[FieldError]) -> None:
    if problems:
        raise UsageError(summary(list(map(str, problems))))
