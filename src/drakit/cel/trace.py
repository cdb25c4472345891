"""Show the value of every part of an expression, for people who debug it.

In:  a Program and variables.
Out: one line per part that the author wrote, with its place, its text and its value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from drakit.cel.errors import BudgetExceeded, EvalError
from drakit.cel.library.times import format_duration, format_timestamp
from drakit.cel.program import TOO_DEEP, Program
from drakit.cel.stack import with_room
from drakit.cel.syntax.ast import CallExpr, Expr, Ident, Literal, children
from drakit.cel.syntax.unparse import literal_text, unparse
from drakit.cel.values import Duration, Opaque, Optional, Timestamp, Value, keys, type_name, weight

NOT_EVALUATED = "not evaluated"
_WIDTH, _MOST = 60, 5000
_MAKERS = {
    "kubernetes.Quantity": "quantity",
    "kubernetes.Semver": "semver",
    "kubernetes.URL": "url",
    "net.IP": "ip",
    "net.CIDR": "cidr",
}

Seen = dict[int, tuple[Value, int]]


@dataclass(frozen=True, slots=True)
class TraceLine:
    """A part of an expression. `times` counts how often it was evaluated; `value` is of the last time."""

    line: int
    column: int
    depth: int
    text: str
    value: str
    times: int

    def __str__(self) -> str:
        text = self.text if len(self.text) <= _WIDTH else self.text[: _WIDTH - 1] + "…"
        repeated = f"  (last of {self.times})" if self.times > 1 else ""
        return f"{self.line}:{self.column:<4} {'  ' * self.depth}{text} = {self.value}{repeated}"


def trace(program: Program, variables: dict[str, Value], *, limit: int | None = None) -> tuple[TraceLine, ...]:
    """Evaluate once. One line per part, the whole expression first."""
    try:
        return with_room(lambda: tuple(_lines(program, _observed(program, variables, limit))))
    except RecursionError:
        return (TraceLine(1, 1, 0, program.source.text, f"error: {TOO_DEEP}", 1),)


def _observed(program: Program, variables: dict[str, Value], limit: int | None) -> Seen:
    """Per part that was evaluated: its last value, and how often it was evaluated."""
    seen: Seen = {}
    last = 0

    def observe(step: int, value: Value) -> None:
        nonlocal last
        again = step == last  # a path reports its last hop, and then itself
        seen[step] = value, seen.get(step, (None, 0))[1] + (not again)
        last = step

    try:
        program.metered(variables, limit=limit, observer=observe)
    except BudgetExceeded as error:
        seen[program.checked.tree.root.id] = EvalError(str(error)), 1
    return seen


def _lines(program: Program, seen: Seen) -> Iterator[TraceLine]:
    tree, source = program.checked.tree, program.source
    stack: list[tuple[Expr, int]] = [(tree.root, 0)]
    while stack:
        node, depth = stack.pop()
        if isinstance(node, Literal) or (isinstance(node, Ident) and node.id not in seen):
            continue  # says nothing that its own text does not say
        value, times = seen.get(node.id, (None, 0))
        shown = show(value) if times else NOT_EVALUATED
        yield TraceLine(*source.position(node.offset), depth, unparse(tree, node), shown, times)
        written = tree.macro_calls.get(node.id)
        stack.extend((part, depth + 1) for part in reversed(list(_parts(node, written))))


def _parts(node: Expr, written: CallExpr | None) -> Iterator[Expr]:
    """The parts that the author wrote: of a macro its target and arguments, without the names of its variables."""
    if written is None:
        yield from children(node)
        return
    if written.target is not None and not (isinstance(written.target, Ident) and written.target.name == "cel"):
        yield written.target
    for index, arg in enumerate(written.args):
        if index or not isinstance(arg, Ident):
            yield arg


def show(value: Value) -> str:
    """A value as text, written like a literal where possible. A very large value is cut."""
    if weight(value, _MOST) <= _MOST:
        return with_room(lambda: _text(value))
    return f"{value[:_MOST]!r}…" if isinstance(value, str | bytes) else f"a large {type_name(value)}"


def _text(value: Value) -> str:
    match value:
        case EvalError():
            return f"error: {value.message}"
        case tuple():
            return f"[{', '.join(map(_text, value))}]"
        case dict():
            entries = zip(keys(value), value.values(), strict=True)
            return "{" + ", ".join(f"{_text(key)}: {_text(held)}" for key, held in entries) + "}"
        case Optional():
            return f"optional.of({_text(value.value)})" if value.present else "optional.none()"
        case Duration():
            return f'duration("{format_duration(value)}")'
        case Timestamp():
            return f'timestamp("{format_timestamp(value)}")'
        case Opaque() if value.type_name in _MAKERS:
            return f'{_MAKERS[value.type_name]}("{value!r}")'
    return literal_text(value)
