"""What one call costs at worst, by function and overload.

In:  the target and the arguments with what is known of their sizes.
Out: the cost of the call alone, and the size of its result where that is bounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from drakit.cel.checking.types import Type, TypeKind
from drakit.cel.cost.sizes import LIST_COST, REGEX, TRAVERSAL, UNBOUNDED, UNKNOWN, Size, plus, scaled, times
from drakit.cel.syntax.ast import Expr, Literal


class CallCost(NamedTuple):
    cost: int
    size: Size | None = None


@dataclass(frozen=True, slots=True)
class Argument:
    expr: Expr
    type: Type
    path: tuple[str, ...]
    size: Size | None
    size_of: Callable[[tuple[str, ...]], Size | None]

    @property
    def size_or_unknown(self) -> Size:
        return UNKNOWN if self.size is None else self.size

    @property
    def bounded(self) -> Size:
        """The size, also by the path when nothing else is known."""
        if self.size is not None:
            return self.size
        return (self.size_of(self.path) if self.path else None) or UNKNOWN

    def element(self) -> tuple[Type, Size] | None:
        """Type and size of the elements, when the static type has any."""
        if not self.type.params:
            return None
        size = self.size_of((*self.path, "@items")) if self.path else None
        return self.type.params[0], size or UNKNOWN

    def number(self, default: int) -> int:
        """The value of an int literal, not below 0."""
        if isinstance(self.expr, Literal) and type(self.expr.value) is int:
            return max(self.expr.value, 0)
        return default


Arguments = list[Argument]
Estimate = Callable[[Argument | None, Arguments], CallCost | None]

_FREE_TEXT = frozenset({"cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"})
_ONE = frozenset(
    [
        "masked",
        "prefixLength",
        "family",
        "isUnspecified",
        "isLoopback",
        "isLinkLocalMulticast",
        "isLinkLocalUnicast",
        "isGlobalUnicast",
        "format.named",
        "sign",
        "asInteger",
        "isInteger",
        "asApproximateFloat",
        "isGreaterThan",
        "isLessThan",
        "compareTo",
        "add",
        "sub",
        "major",
        "minor",
        "patch",
        "getScheme",
        "getHostname",
        "getHost",
        "getPort",
        "getEscapedPath",
        "getQuery",
    ]
)
_MAX_FORMAT_REGEX = 128
_MAX_FORMAT_SIZE = 64
_IP_BYTES = 16
_CONSTANT_EQUALITY = frozenset({"kubernetes.Quantity", "kubernetes.Semver", "net.IP", "net.CIDR"})


def estimate_call(
    function: str, overload: str, target: Argument | None, args: Arguments, host: Mapping[str, int]
) -> CallCost:
    """The host's cost of the overload; otherwise the rule for the overload, for the function, or of the language."""
    if overload in host:
        return CallCost(host[overload])
    # The first rule that has an answer wins, in this order.
    for rule in (_OVERLOADS.get(overload), _FUNCTIONS.get(function), _STANDARD.get(overload)):
        if rule is not None and (found := rule(target, args)) is not None:
            return found
    if function == "_==_" and (found := _equality(args)) is not None:
        return found
    if function in _ONE or (function == "ip" and overload == "cidr_ip"):
        return CallCost(1)
    if function in _FREE_TEXT or function == "ip":
        return CallCost(scaled(args[0].bounded.high, TRAVERSAL))
    if function in {"containsIP", "containsCIDR"}:
        return CallCost(_containment(function, overload, args))
    return _comparison(args) if overload in _COMPARED else CallCost(1)


# --- Kubernetes' functions


def _scan(target: Argument | None, _: Arguments) -> CallCost | None:
    """isSorted, sum, min, max, indexOf, lastIndexOf: every element is visited once."""
    if target is None:
        return None
    size = target.bounded
    element = target.element()
    if element is None:
        return CallCost(scaled(size.high, TRAVERSAL))
    each = 1
    if element[0].kind in {TypeKind.STRING, TypeKind.BYTES}:
        each = plus(each, scaled(element[1].high, TRAVERSAL))
    return CallCost(times(size.high, each))


def _url(_: Argument | None, args: Arguments) -> CallCost | None:
    size = args[0].bounded
    return CallCost(scaled(size.high, TRAVERSAL), size)


def _same_size(target: Argument | None, _: Arguments) -> CallCost | None:
    if target is None:
        return None
    return CallCost(scaled(target.bounded.high, TRAVERSAL), target.bounded)


def _replace(target: Argument | None, args: Arguments) -> CallCost | None:
    if target is None or len(args) < 2:
        return None
    text, old, new = target.bounded, args[0].bounded, args[1].bounded
    high, low = _longest(text, old, new), _shortest(text, old, new)
    return CallCost(scaled(text.high, 2 * TRAVERSAL), Size(low, high))


def _longest(text: Size, old: Size, new: Size) -> int:
    if old.low == 0:  # the empty string is found around every character
        return plus(times(plus(text.high, 1), new.high), text.high)
    if new.high <= old.low:
        return text.high
    return times(_quotient(text.high, old.low), new.high)


def _shortest(text: Size, old: Size, new: Size) -> int:
    if old.high == 0:
        return plus(times(plus(text.low, 1), new.low), text.low)
    if old.high <= new.low:
        return text.low
    return times(_quotient(text.low, old.high), new.low)


def _quotient(a: int, b: int) -> int:
    return min(math.ceil(float(a) / float(b)), UNBOUNDED)


def _split(target: Argument | None, args: Arguments) -> CallCost | None:
    if target is None:
        return None
    size = target.bounded
    most = size.high
    if len(args) > 1 and isinstance(args[1].expr, Literal) and type(args[1].expr.value) is int:
        # Upstream converts to an unsigned number: -1, which means no limit, becomes the largest.
        most = args[1].expr.value % 2**64
    return CallCost(scaled(size.high, 2 * TRAVERSAL), Size(0, most))


def _join(target: Argument | None, args: Arguments) -> CallCost | None:
    if target is None:
        return None
    count, size = target.bounded, Size(0, 0)
    if (element := target.element()) is not None:
        size = count.multiplied(element[1])
    if args:
        gaps = Size(max(count.low - 1, 0), max(count.high - 1, 0))
        size = size.added(args[0].bounded.multiplied(gaps))
    return CallCost(scaled(size.high, TRAVERSAL), size)


def _find(target: Argument | None, args: Arguments) -> CallCost | None:
    if target is None or not args:
        return None
    size = target.bounded
    text = scaled(plus(size.high, 1), TRAVERSAL)
    return CallCost(times(text, scaled(args[0].bounded.high, REGEX)), Size(0, size.high))


def _canonical(_: Argument | None, args: Arguments) -> CallCost | None:
    return CallCost(scaled(args[0].bounded.high, 2 * TRAVERSAL))


def _validate(_: Argument | None, args: Arguments) -> CallCost | None:
    return CallCost(scaled(scaled(args[0].bounded.high, TRAVERSAL), _MAX_FORMAT_REGEX * REGEX))


def _containment(function: str, overload: str, args: Arguments) -> int:
    total = scaled(2 * _IP_BYTES, TRAVERSAL)
    if function == "containsCIDR":
        total += scaled(_IP_BYTES, TRAVERSAL) + 1
    if overload.endswith("_string"):
        total = plus(total, scaled(args[0].bounded.high, TRAVERSAL))
    return total


def _equality(args: Arguments) -> CallCost | None:
    """Equality of extension types costs the same whatever they hold."""
    left, right = (argument.type for argument in args)
    if left != right:
        return None
    if left.name in _CONSTANT_EQUALITY and left.kind in {TypeKind.STRUCT, TypeKind.OPAQUE}:
        return CallCost(1)
    if left.name == "kubernetes.NamedFormat":
        return CallCost(scaled(_MAX_FORMAT_SIZE, TRAVERSAL))
    if left.name == "kubernetes.URL":
        size = args[1].size
        return CallCost(scaled(1 if size is None else size.high, TRAVERSAL))
    return None


_FUNCTIONS: Mapping[str, Estimate] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _scan),
    "url": _url,
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _same_size),
    "replace": _replace,
    "split": _split,
    "join": _join,
    "find": _find,
    "findAll": _find,
    "ip.isCanonical": _canonical,
    "validate": _validate,
}


# --- the list and set extensions


def _allocating(factor: float, size: Size) -> CallCost:
    return CallCost(plus(scaled(size.high, factor), 1 + LIST_COST), size)


def _slice(target: Argument | None, args: Arguments) -> CallCost | None:
    if target is None:
        return None
    start, end = args[0].number(0), args[1].number(target.bounded.high)
    # Wraps around as the unsigned subtraction of upstream does.
    return _allocating(1, Size.exactly((end - start) % 2**64))


def _range(_: Argument | None, args: Arguments) -> CallCost | None:
    return _allocating(1, Size.exactly(args[0].number(UNBOUNDED)))


def _reverse(target: Argument | None, _: Arguments) -> CallCost | None:
    return None if target is None else _allocating(1, target.bounded)


def _flatten(target: Argument | None, args: Arguments) -> CallCost | None:
    depth = args[0].number(UNBOUNDED) if args else 1
    return None if target is None else _allocating(float(depth), target.bounded)


def _self_comparison(argument: Argument | None, factor: float) -> CallCost | None:
    if argument is None:
        return None
    return _allocating(factor, argument.bounded.multiplied(argument.bounded))


def _sorts() -> dict[str, Estimate]:
    rules: dict[str, Estimate] = {}
    names = (
        "int",
        "uint",
        "double",
        "bool",
        "google.protobuf.Duration",
        "google.protobuf.Timestamp",
        "string",
        "bytes",
    )
    for name in names:
        factor = 2.0 + TRAVERSAL if name in {"string", "bytes"} else 2.0
        rules[f"list_{name}_sort"] = _sort(factor)
        rules[f"list_{name}_sortByAssociatedKeys"] = _sort_by(factor)
    return rules


def _sort(factor: float) -> Estimate:
    return lambda target, _: _self_comparison(target, factor)


def _sort_by(factor: float) -> Estimate:
    return lambda _, args: _self_comparison(args[0], factor)


def _sets(factor: float) -> Estimate:
    def rule(_: Argument | None, args: Arguments) -> CallCost:
        pairs = args[0].bounded.multiplied(args[1].bounded)
        return CallCost(plus(scaled(pairs.high, factor), 1))

    return rule


_OVERLOADS: Mapping[str, Estimate] = {
    "list_slice": _slice,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": _range,
    "list_reverse": _reverse,
    "list_distinct": lambda target, _: _self_comparison(target, 2.0),
    **_sorts(),
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
}


# --- the language's own functions


def _format(target: Argument | None, _: Arguments) -> CallCost | None:
    return None if target is None else CallCost(scaled(target.size_or_unknown.high, TRAVERSAL))


def _to_bytes(_: Argument | None, args: Arguments) -> CallCost | None:
    size = args[0].size_or_unknown
    # A character has up to four bytes in UTF-8.
    return CallCost(scaled(size.high, TRAVERSAL), Size(size.low, size.high * 4 % 2**64))


def _from_bytes(_: Argument | None, args: Arguments) -> CallCost | None:
    size = args[0].size_or_unknown
    return CallCost(scaled(size.high, TRAVERSAL), Size(size.low // 4, size.high))


def _quote(_: Argument | None, args: Arguments) -> CallCost | None:
    size = args[0].size_or_unknown
    return CallCost(scaled(size.high, TRAVERSAL), Size(size.low + 2, (size.high * 2 + 2) % 2**64))


def _affix(_: Argument | None, args: Arguments) -> CallCost | None:
    return CallCost(scaled(args[0].size_or_unknown.high, TRAVERSAL)) if len(args) == 1 else None


def _in_list(_: Argument | None, args: Arguments) -> CallCost | None:
    return CallCost(scaled(args[1].size_or_unknown.high, 1))


def _matches(target: Argument | None, args: Arguments) -> CallCost | None:
    if target is None:
        return None
    text = scaled(plus(target.size_or_unknown.high, 1), TRAVERSAL)
    return CallCost(times(text, scaled(args[0].size_or_unknown.high, REGEX)))


def _contains(target: Argument | None, args: Arguments) -> CallCost | None:
    if target is None:
        return None
    text = scaled(target.size_or_unknown.high, TRAVERSAL)
    return CallCost(times(text, scaled(args[0].size_or_unknown.high, TRAVERSAL)))


def _add_list(_: Argument | None, args: Arguments) -> CallCost | None:
    return CallCost(1, args[0].size_or_unknown.added(args[1].size_or_unknown))


def _add_text(_: Argument | None, args: Arguments) -> CallCost | None:
    size = args[0].size_or_unknown.added(args[1].size_or_unknown)
    return CallCost(scaled(size.high, TRAVERSAL), size)


def _comparison(args: Arguments) -> CallCost:
    return CallCost(scaled(min(arg.size_or_unknown.high for arg in args), TRAVERSAL))


_STANDARD: Mapping[str, Estimate] = {
    "string_format": _format,
    "string_to_bytes": _to_bytes,
    "bytes_to_string": _from_bytes,
    "strings_quote": _quote,
    "starts_with_string": _affix,
    "ends_with_string": _affix,
    "in_list": _in_list,
    "matches_string": _matches,
    "contains_string": _contains,
    "add_list": _add_list,
    "add_string": _add_text,
    "add_bytes": _add_text,
}
_COMPARED = frozenset(
    {"equals", "not_equals"}
    | {
        f"{order}_{kind}"
        for order in ("less", "greater", "less_equals", "greater_equals")
        for kind in ("string", "bytes")
    }
)
