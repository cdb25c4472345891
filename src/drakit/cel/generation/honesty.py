"""Whether generated code may rely on the static types of an expression.

In:  a Checked tree.
Out: nothing, or Unsuited: then only the counted steps, which look at every value, give the right answer.

The checker accepts a dynamic value, and null, where any type is wanted. The other arguments then decide what a type
parameter stands for, although the dynamic value may have another type. So `x.orValue(1)` has the static type int and
`x + [1]` that of a list of ints, whatever x holds. `c ? null : duration("1s")` is a duration that may be null.
"""

from __future__ import annotations

from collections.abc import Iterator

from drakit.cel.checking.checker import Checked
from drakit.cel.checking.declarations import Overload
from drakit.cel.checking.types import Type, TypeKind, is_dynamic, is_optional
from drakit.cel.syntax.ast import CallExpr, walk


class Unsuited(Exception):
    """The expression needs the steps that look at every value."""


def require_honest_types(checked: Checked) -> None:
    for node in walk(checked.tree.root):
        if isinstance(node, CallExpr) and _misleads(checked, node):
            raise Unsuited


def _misleads(checked: Checked, call: CallExpr) -> bool:
    """Whether a call may return a value of another type than its static type."""
    types, target = checked.types, call.target
    if call.function in {"or", "orValue"} and target is not None and not is_optional(types[target.id]):
        return True
    overloads = checked.overloads[call.id]
    if len(overloads) != 1 or call.function not in checked.environment.functions:
        return False
    overload = checked.environment.functions[call.function].overload(overloads[0])
    parts = ([target] if target is not None else []) + call.args
    return _overclaims(overload, [types[part.id] for part in parts], types[call.id])


def _overclaims(overload: Overload, given: list[Type], result: Type) -> bool:
    if len(overload.args) != len(given):  # chains of `&&` and `||`, which are bool whatever they are made of
        return False
    undetermined = {name for wanted, t in zip(overload.args, given, strict=True) for name in _unseen(wanted, t)}
    return any(name in undetermined and not _is_open(t) for name, t in _places(overload.result, result))


def _unseen(wanted: Type, given: Type) -> Iterator[str]:
    """The type parameters that an argument leaves open, because it is dynamic or null there."""
    if _is_open(given):
        yield from _names(wanted)
    for inner, t in zip(wanted.params, given.params, strict=False):
        yield from _unseen(inner, t)


def _is_open(t: Type) -> bool:
    return is_dynamic(t) or t.kind is TypeKind.NULL


def _names(t: Type) -> Iterator[str]:
    if t.kind is TypeKind.PARAM:
        yield t.name
    for inner in t.params:
        yield from _names(inner)


def _places(declared: Type, actual: Type) -> Iterator[tuple[str, Type]]:
    """Each type parameter of a declared type with what stands in its place."""
    if declared.kind is TypeKind.PARAM:
        yield declared.name, actual
    for inner, t in zip(declared.params, actual.params, strict=False):
        yield from _places(inner, t)
