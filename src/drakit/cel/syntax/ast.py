"""The tree of an expression, macros already expanded.

Invariant: ids are unique per node object; a node may stand in two places (the variable of `filter`), with one id.
`offset` is where the caret of an error goes: the operator, the name, the opening bracket of a call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

ACCUMULATOR = "@result"


@dataclass(slots=True)
class Expr:
    id: int
    offset: int


@dataclass(slots=True)
class Literal(Expr):
    value: object


@dataclass(slots=True)
class Ident(Expr):
    name: str


@dataclass(slots=True)
class Select(Expr):
    operand: Expr
    name: str
    test_only: bool = False


@dataclass(slots=True)
class CallExpr(Expr):
    """A function, an operator (`_+_`), or a method when `target` is set. `_&&_` and `_||_` take two or more terms."""

    function: str
    target: Expr | None
    args: list[Expr]


@dataclass(slots=True)
class ListExpr(Expr):
    elements: list[Expr]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True)
class MapEntry:
    offset: int
    key: Expr
    value: Expr
    optional: bool


@dataclass(slots=True)
class MapExpr(Expr):
    entries: list[MapEntry]


@dataclass(slots=True)
class FieldEntry:
    offset: int
    name: str
    value: Expr
    optional: bool


@dataclass(slots=True)
class StructExpr(Expr):
    """A message such as `a.b.C{field: value}`."""

    name: str
    entries: list[FieldEntry]


@dataclass(slots=True)
class Comprehension(Expr):
    """A loop with an accumulator, which is what macros such as `all` and `map` are expanded to.

    The accumulator starts as `init`. Each element sets it to `step`, as long as `condition` holds. `result` is the
    value of the loop, and `macro` the name of the macro.
    """

    macro: str
    range: Expr
    variable: str
    variable2: str
    accumulator: str
    init: Expr
    condition: Expr
    step: Expr
    result: Expr


@dataclass(slots=True)
class Tree:
    """A parsed expression. `macro_calls` keeps, per expanded macro, the call that the author wrote."""

    root: Expr
    macro_calls: dict[int, CallExpr] = field(default_factory=dict)


def children(expr: Expr) -> Iterator[Expr]:
    """The direct parts of a node, in the order of the text."""
    match expr:
        case Select():
            yield expr.operand
        case CallExpr():
            if expr.target is not None:
                yield expr.target
            yield from expr.args
        case ListExpr():
            yield from expr.elements
        case MapExpr():
            for entry in expr.entries:
                yield entry.key
                yield entry.value
        case StructExpr():
            for field_entry in expr.entries:
                yield field_entry.value
        case Comprehension():
            yield from (expr.range, expr.init, expr.condition, expr.step, expr.result)


def walk(root: Expr) -> Iterator[Expr]:
    """Every node under and including `root`, parents first."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(list(children(node))))


def depth(root: Expr) -> int:
    """The number of levels."""
    level, deepest = [root], 0
    while level:
        deepest += 1
        level = [child for node in level for child in children(node)]
    return deepest
