"""The running cost of one evaluation, counted step by step as upstream counts it.

In:  every value as it is computed, under the id of its step.
Out: the cost so far; BudgetExceeded as soon as it passes the limit.

Values wait on a stack until the call that takes them is charged, for its cost depends on their sizes. A call whose
arguments are not all there (one of them was an error, the rest was not evaluated) is not charged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from drakit.cel.cost.sizes import LIST_COST, REGEX, TRAVERSAL
from drakit.cel.errors import BudgetExceeded
from drakit.cel.library.formats import FormatValue
from drakit.cel.values import Opaque, Optional, Value, size

Observer = Callable[[int, Value], None]


class Meter:
    """Counts one evaluation."""

    def __init__(self, limit: int | None = None, observer: Observer | None = None) -> None:
        self.cost = 0
        self._limit = limit
        self._observer = observer
        self._stack: list[tuple[int, Value]] = []
        self._waiting: dict[int, int] = {}  # how many values of a step are on the stack

    def pushed(self, step: int, value: Value) -> None:
        """Take in the value of a step. The cost of the step is already added."""
        self._stack.append((step, value))
        self._waiting[step] = self._waiting.get(step, 0) + 1
        if self._observer is not None:
            self._observer(step, value)
        # After the step, as upstream: the step that passes the limit is still evaluated.
        if self._limit is not None and self.cost > self._limit:
            raise BudgetExceeded

    def drop(self, *steps: int) -> None:
        """Remove the latest value of each of these steps from the stack, with everything above it."""
        for step in steps:
            if self._waiting.get(step):
                self._pop(step)

    def _pop(self, step: int) -> Value:
        """Remove and return the latest value of a step, with everything above it."""
        while True:
            top, value = self._stack.pop()
            self._waiting[top] -= 1
            if top == step:
                return value

    def take(self, steps: Sequence[int]) -> list[Value] | None:
        """Remove and return the values of a call's arguments; None when one of them is missing."""
        values: list[Value] = []
        # From the last argument down: taking one drops everything above it.
        for step in reversed(steps):
            # An argument that was an error, or was never computed (`&&`): upstream charges nothing for such a call.
            if not self._waiting.get(step):
                return None
            values.append(self._pop(step))
        values.reverse()
        return values

    def foresee(self, overload: str, args: list[Value]) -> None:
        """Raise BudgetExceeded before a call that would cost more than is left, and would take that long."""
        rule = _FORESEEN.get(overload)
        if rule is not None and self._limit is not None and self.cost + rule(overload, args, None) > self._limit:
            raise BudgetExceeded

    def charge_call(self, function: str, overload: str, steps: Sequence[int], result: Value) -> None:
        args = self.take(steps)
        if args is not None:
            self.cost += call_cost(function, overload, args, result)


def call_cost(function: str, overload: str, args: list[Value], result: Value) -> int:
    """What one call cost, by its arguments and its result."""
    rule = _OVERLOADS.get(overload) or _FUNCTIONS.get(function)
    if rule is not None:
        return rule(overload, args, result)
    if function == "_==_" and isinstance(args[0], Opaque):
        return 1
    rule = _STANDARD.get(overload)
    return 1 if rule is None else rule(overload, args, result)


Rule = Callable[[str, list[Value], Value], int]


def _ceil(amount: float) -> int:
    return math.ceil(amount)


def _measure(value: Value) -> int:
    """The size of a value; of what it holds for an optional."""
    while isinstance(value, Optional) and value.present:
        value = value.value
    return size(value)


def traversal(value: Value) -> int:
    """The cost of visiting every part of a value."""
    return _traversal(value, {})


def _traversal(value: Value, known: dict[int, int]) -> int:
    """`known` holds the cost of each container by identity: a list of lists of one list is looked through once."""
    if isinstance(value, str | bytes):
        # Bytes of UTF-8, not characters, as upstream.
        return int(len(value.encode() if isinstance(value, str) else value) * TRAVERSAL)
    if not isinstance(value, tuple | dict):
        return 1
    if id(value) not in known:
        parts = value if isinstance(value, tuple) else [part for entry in value.items() for part in entry]
        known[id(value)] = sum(_traversal(part, known) for part in parts)
    return known[id(value)]


def _one(_: str, __: list[Value], ___: Value) -> int:
    return 1


def _scan(_: str, args: list[Value], __: Value) -> int:
    return traversal(args[0])


def _first(factor: float) -> Rule:
    return lambda _, args, __: _ceil(size(args[0]) * factor)


def _join(_: str, __: list[Value], result: Value) -> int:
    return _ceil(size(result) * 2 * TRAVERSAL)


def _find(_: str, args: list[Value], __: Value) -> int:
    return _ceil((1.0 + size(args[0])) * TRAVERSAL) * _ceil(size(args[1]) * REGEX)


def _contains_ip(overload: str, args: list[Value], _: Value) -> int:
    cost = _ceil(2 * size(args[0]) * TRAVERSAL)
    return cost + (_ceil(size(args[1]) * TRAVERSAL) if overload == "cidr_contains_ip_string" else 0)


def _contains_cidr(overload: str, args: list[Value], _: Value) -> int:
    cost = _ceil(2 * size(args[0]) * TRAVERSAL) + _ceil(size(args[0]) * TRAVERSAL) + 1
    return cost + (_ceil(size(args[1]) * TRAVERSAL) if overload == "cidr_contains_cidr_string" else 0)


def _validate(_: str, args: list[Value], __: Value) -> int:
    if not isinstance(args[0], FormatValue):
        return 1
    return _ceil((1.0 + size(args[1])) * TRAVERSAL) * _ceil(args[0].regex_size * REGEX)


def _ip(overload: str, args: list[Value], _: Value) -> int:
    return 1 if overload == "cidr_ip" else _ceil(size(args[0]) * TRAVERSAL)


_FUNCTIONS: Mapping[str, Rule] = {
    **dict.fromkeys(["isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"], _scan),
    **dict.fromkeys(["url", "lowerAscii", "upperAscii", "substring", "trim"], _first(TRAVERSAL)),
    **dict.fromkeys(["replace", "split"], _first(2 * TRAVERSAL)),
    "join": _join,
    "find": _find,
    "findAll": _find,
    **dict.fromkeys(["cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"], _first(TRAVERSAL)),
    "ip": _ip,
    "ip.isCanonical": _first(2 * TRAVERSAL),
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "validate": _validate,
}


# --- the list and set extensions


def _allocating(factor: float, amount: int) -> int:
    return int(amount * factor) + 1 + LIST_COST


def _output(_: str, __: list[Value], result: Value) -> int:
    return _allocating(1, size(result))


def _flatten(_: str, args: list[Value], __: Value) -> int:
    return _allocating(float(args[1]) if len(args) == 2 and type(args[1]) is int else 1.0, size(args[0]))


def _self_comparison(index: int) -> Rule:
    def rule(_: str, args: list[Value], __: Value) -> int:
        values = args[index]
        if not isinstance(values, tuple) or not values:
            return _allocating(2.0, 0)
        factor = 2.0 + TRAVERSAL if isinstance(values[0], str | bytes) else 2.0
        return _allocating(factor, len(values) ** 2)

    return rule


def _sets(factor: float) -> Rule:
    return lambda _, args, __: 1 + int(size(args[0]) * size(args[1]) * factor)


_COMPARABLE = (
    "int",
    "uint",
    "double",
    "bool",
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
    "string",
    "bytes",
)
_OVERLOADS: Mapping[str, Rule] = {
    "list_slice": _output,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": _output,
    "list_reverse": _output,
    "list_distinct": _self_comparison(0),
    **{f"list_{name}_sort": _self_comparison(0) for name in _COMPARABLE},
    **{f"list_{name}_sortByAssociatedKeys": _self_comparison(1) for name in _COMPARABLE},
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
}
_FORESEEN: Mapping[str, Rule] = {
    "list_distinct": _self_comparison(0),
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
}


# --- the language's own functions


def _per_character(_: str, args: list[Value], __: Value) -> int:
    return _ceil(_measure(args[0]) * TRAVERSAL)


def _in_list(_: str, args: list[Value], __: Value) -> int:
    return _measure(args[1])


def _compared(_: str, args: list[Value], __: Value) -> int:
    return _ceil(min(_measure(args[0]), _measure(args[1])) * TRAVERSAL)


def _concatenated(_: str, args: list[Value], __: Value) -> int:
    return _ceil((_measure(args[0]) + _measure(args[1])) * TRAVERSAL)


def _matches(_: str, args: list[Value], __: Value) -> int:
    return _ceil((1.0 + _measure(args[0])) * TRAVERSAL) * _ceil(_measure(args[1]) * REGEX)


def _contains(_: str, args: list[Value], __: Value) -> int:
    return _ceil(_measure(args[0]) * TRAVERSAL) * _ceil(_measure(args[1]) * TRAVERSAL)


_STANDARD: Mapping[str, Rule] = {
    **dict.fromkeys(
        [
            "starts_with_string",
            "ends_with_string",
            "string_to_bytes",
            "bytes_to_string",
            "strings_quote",
            "string_format",
        ],
        _per_character,
    ),
    "in_list": _in_list,
    **dict.fromkeys(("equals", "not_equals"), _compared),
    **{
        f"{order}_{kind}": _compared
        for order in ("less", "greater", "less_equals", "greater_equals")
        for kind in ("string", "bytes")
    },
    "add_string": _concatenated,
    "add_bytes": _concatenated,
    "matches_string": _matches,
    "contains_string": _contains,
}
