"""Checks that types alone cannot make.

A literal that is used as a duration, timestamp, pattern or format string must be a valid one. The elements of a list
must have one type; so must the keys and the values of a map.

In:  a Checked tree.
Out: nothing, or CompileError with every fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from drakit.cel.checking.checker import Checked
from drakit.cel.checking.types import Type, equivalent, unwrapped
from drakit.cel.errors import CompileError, EvalError, Issue
from drakit.cel.library.format import FormatFault, check_format
from drakit.cel.library.patterns import pattern
from drakit.cel.library.times import parse_duration, parse_timestamp
from drakit.cel.syntax.ast import CallExpr, Expr, ListExpr, Literal, MapExpr, children
from drakit.cel.syntax.source import Source

_LITERAL_CHECKS: dict[str, Callable[[str], object]] = {
    "duration": parse_duration,
    "timestamp": parse_timestamp,
    "matches": pattern,
}


def validate(checked: Checked, source: Source) -> None:
    """Raise CompileError when the tree breaks one of the rules."""
    issues = [source.issue(at.offset, message) for at, message in _faults(checked)]
    if issues:
        raise CompileError(_unique(issues))


def _unique(issues: list[Issue]) -> list[Issue]:
    return list(dict.fromkeys(issues))


def _faults(checked: Checked) -> Iterator[tuple[Expr, str]]:
    stack: list[tuple[Expr, bool]] = [(checked.tree.root, False)]
    while stack:
        node, in_format = stack.pop()
        if isinstance(node, CallExpr):
            yield from _call_faults(checked, node)
            in_format = in_format or node.function == "format"
        # The arguments of `format` are given as one list, and may differ in type.
        elif not in_format:
            yield from _mixed(checked, node)
        stack.extend((child, in_format) for child in children(node))


def _call_faults(checked: Checked, call: CallExpr) -> Iterator[tuple[Expr, str]]:
    check = _LITERAL_CHECKS.get(call.function)
    first = call.args[0] if call.args else None
    if check is not None and isinstance(first, Literal) and isinstance(first.value, str):
        try:
            check(first.value)
        except EvalError:
            yield first, f"invalid {call.function} argument"
    if call.function == "format" and isinstance(call.target, Literal) and isinstance(first, ListExpr):
        try:
            check_format(str(call.target.value), first.elements, lambda part: checked.types[part.id])
        except FormatFault as fault:
            yield fault.at or call, str(fault)


def _mixed(checked: Checked, node: Expr) -> Iterator[tuple[Expr, str]]:
    """Elements, keys and values whose type differs from that of the first."""
    types = checked.types
    if isinstance(node, ListExpr):
        held = [_held(types[e.id], optional=i in node.optional) for i, e in enumerate(node.elements)]
        yield from _different(node.elements, held, first_only=True)
    elif isinstance(node, MapExpr):
        yield from _different([e.key for e in node.entries], [types[e.key.id] for e in node.entries])
        values = [_held(types[e.value.id], optional=e.optional) for e in node.entries]
        yield from _different([e.value for e in node.entries], values)


def _held(t: Type, *, optional: bool) -> Type:
    return unwrapped(t)[0] if optional else t


def _different(nodes: list[Expr], types: list[Type], *, first_only: bool = False) -> Iterator[tuple[Expr, str]]:
    for node, t in zip(nodes[1:], types[1:], strict=True):
        if not equivalent(types[0], t):
            yield node, f"expected type '{types[0]}' but found '{t}'"
            if first_only:
                return
