"""Python for comprehensions: loops that stop as early as the language lets them.

`all` and `exists` hold an error back, because a later element may decide. The other forms cannot recover from an error.
They still evaluate the condition of each element, because a later error replaces an earlier one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from drakit.cel.checking.declarations import implementation
from drakit.cel.checking.types import BOOL, DYN, INT, STRING, Type, TypeKind
from drakit.cel.evaluation.steps import iterated
from drakit.cel.generation.operators import as_bool, membership
from drakit.cel.generation.writer import Fragment, Lines
from drakit.cel.library.insertion import MAP_INSERT, inserted, inserted_all
from drakit.cel.syntax.ast import CallExpr, Comprehension, Expr, Ident, ListExpr, Literal, walk
from drakit.cel.values import GrowingMap, Value, keys

if TYPE_CHECKING:
    from drakit.cel.generation.functions import Generator


def emit_comprehension(gen: Generator, expr: Comprehension) -> Fragment:
    if expr.macro == "bind":
        return _bind(gen, expr)
    if (member := _member(gen, expr)) is not None:
        return member
    with _Scoped(gen):
        header = _loop(gen, expr)
        if expr.macro in {"all", "exists"}:
            return _quantifier(gen, expr, header)
        if expr.macro == "exists_one":
            return _exists_one(gen, expr, header)
        return _collected(gen, expr, header)


def _member(gen: Generator, expr: Comprehension) -> Fragment | None:
    """`["a", "b"].exists(x, x == y)` with a `y` that does not depend on x: y is one of them."""
    if expr.macro != "exists" or expr.variable2 or not isinstance(expr.range, ListExpr) or not expr.range.elements:
        return None
    body = _arguments(expr.step)[1]
    if not isinstance(body, CallExpr) or body.function != "_==_":
        return None
    variable, wanted = body.args
    is_variable = isinstance(variable, Ident) and variable.name == expr.variable
    uses = (node for node in walk(wanted) if isinstance(node, Ident))
    # The other side must not depend on the element: it is evaluated once.
    if not is_variable or any(node.name == expr.variable for node in uses):
        return None
    members = [element.value for element in expr.range.elements if isinstance(element, Literal)]
    if len(members) != len(expr.range.elements) or not all(member.__class__ in {str, int} for member in members):
        return None
    return membership(gen.writer, gen.expr(wanted), gen.expr(expr.range), literal=True)


class _Scoped:
    """Variables that are bound inside are forgotten behind it."""

    def __init__(self, gen: Generator) -> None:
        self._gen = gen
        self._before = dict(gen.scope)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self._gen.scope = self._before


def _bind(gen: Generator, expr: Comprehension) -> Fragment:
    """`cel.bind`: computed at once; an error is only raised where the name is used."""
    writer = gen.writer
    with writer.captured() as lines:
        init = gen.expr(expr.init)
    with _Scoped(gen):
        if not lines and not init.raises:
            gen.scope[expr.accumulator] = writer.spilled(init)
            return _result(gen, expr)
        name, error = writer.name(), writer.name()
        writer.line(f"{name} = {error} = None")
        with writer.indented("try:"):
            writer.place(lines)
            writer.line(f"{name} = {init.text}")
        with writer.indented("except ERRORS as caught:"):
            writer.line(f"{error} = caught")
        # An error of a bound value counts only where the name is used, and there it can be absorbed by `||`.
        used = f"({name} if {error} is None else {writer.known(_throw)}({error}))"
        gen.scope[expr.accumulator] = Fragment(used, init.type)
        return _result(gen, expr)


def _result(gen: Generator, expr: Comprehension) -> Fragment:
    code = gen.expr(expr.result)
    return code.typed(gen.type_of(expr)) if code.dynamic else code


def _throw(error: Exception) -> Value:
    raise error


def _loop(gen: Generator, expr: Comprehension) -> str:
    """The `for` over the range; its variables are bound."""
    writer = gen.writer
    over = gen.expr(expr.range)
    first, second = writer.name(), writer.name()
    known: tuple[Type, ...] = over.type.params if over.type.kind in {TypeKind.LIST, TypeKind.MAP} else (DYN, DYN)
    if expr.variable2:
        is_list = over.type.kind is TypeKind.LIST
        types = (INT, known[0]) if is_list else known
        source = f"enumerate({over.text})" if is_list else f"{writer.known(_pairs)}({over.text})"
        gen.scope[expr.variable] = Fragment(first, types[0], raises=False, atom=True)
        gen.scope[expr.variable2] = Fragment(second, types[1], raises=False, atom=True)
        return f"for {first}, {second} in {source}:"
    gen.scope[expr.variable] = Fragment(first, known[0], raises=False, atom=True)
    if over.type.kind is TypeKind.LIST or (over.type.kind is TypeKind.MAP and known[0] == STRING):
        return f"for {first} in {over.text}:"
    return f"for {first} in {writer.known(_elements)}({over.text}):"


def _pairs(over: Value) -> Any:
    pairs = iterated(over, two=True)
    if isinstance(pairs, Exception):
        raise pairs
    return pairs


def _elements(over: Value) -> Any:
    if over.__class__ is tuple:
        return over
    if isinstance(over, dict):
        return keys(over)
    return _throw(iterated(over, two=False))  # type: ignore[arg-type]


def _quantifier(gen: Generator, expr: Comprehension, header: str) -> Fragment:
    writer, result, error = gen.writer, gen.writer.name(), gen.writer.name()
    decisive, neutral = ("False", "True") if expr.macro == "all" else ("True", "False")
    with writer.captured() as lines:
        body = as_bool(writer, gen.expr(_arguments(expr.step)[1]))
    guarded = body.raises or bool(lines)
    writer.line(f"{result} = {neutral}")
    if guarded:
        writer.line(f"{error} = None")
    with writer.indented(header):
        stop = f"if {'not ' if expr.macro == 'all' else ''}{body.text}:"
        if guarded:
            with writer.indented("try:"):
                writer.place(lines)
                _decide(gen, stop, result, decisive)
            with writer.indented("except ERRORS as caught:"):
                # The first error is kept, as upstream; it is raised only if no element decides.
                writer.line(f"{error} = {error} or caught")
        else:
            _decide(gen, stop, result, decisive)
    if guarded:
        writer.line(f"if {error} is not None and {result} is {neutral}: raise {error}")
    return Fragment(result, BOOL, raises=False, atom=True)


def _decide(gen: Generator, stop: str, result: str, decisive: str) -> None:
    with gen.writer.indented(stop):
        gen.writer.line(f"{result} = {decisive}")
        gen.writer.line("break")


def _exists_one(gen: Generator, expr: Comprehension, header: str) -> Fragment:
    writer, count = gen.writer, gen.writer.name()
    writer.line(f"{count} = 0")
    with writer.captured() as lines:
        body = as_bool(writer, gen.expr(_arguments(expr.step)[0]))
        with writer.indented(f"if {body.text}:"):
            writer.line(f"{count} += 1")
    _looped(gen, header, lines, error=writer.name() if body.raises or len(lines) > 2 else "")
    return Fragment(f"({count} == 1)", BOOL, raises=False)


def _collected(gen: Generator, expr: Comprehension, header: str) -> Fragment:
    """`map`, `filter` and the transforms: an element or entry for each element that passes."""
    writer, result, error = gen.writer, gen.writer.name(), ""
    makes_map = expr.macro in {"transformMap", "transformMapEntry"}
    writer.line(f"{result} = {writer.known(GrowingMap)}()" if makes_map else f"{result} = []")
    step = expr.step
    with writer.captured() as lines:
        if isinstance(step, CallExpr) and step.function == "_?_:_":
            condition = as_bool(writer, gen.expr(step.args[0]))
            error = writer.name() if condition.raises or lines else ""
            writer.line(f"if {condition.text}{f' and {error} is None' if error else ''}:")
            writer.level += 1
            step = step.args[1]
        _grow(gen, step, result, makes_map=makes_map)
    _looped(gen, header, lines, error)
    return Fragment(f"{'dict' if makes_map else 'tuple'}({result})", gen.type_of(expr), raises=False)


def _looped(gen: Generator, header: str, lines: Lines, error: str) -> None:
    """The loop around a body; with a name for the error, the last one that the body raised comes out behind it."""
    writer = gen.writer
    if not error:
        with writer.indented(header):
            writer.place(lines)
        return
    writer.line(f"{error} = None")
    with writer.indented(header):
        with writer.indented("try:"):
            writer.place(lines)
        with writer.indented("except ERRORS as caught:"):
            writer.line(f"{error} = caught")
    writer.line(f"if {error} is not None: raise {error}")


def _grow(gen: Generator, step: Expr, result: str, *, makes_map: bool) -> None:
    if makes_map:
        _insert(gen, step, result)
        return
    added = _arguments(step)[1]
    assert isinstance(added, ListExpr)  # noqa: S101 - the macro adds a list of one
    gen.writer.line(f"{result}.append({gen.expr(added.elements[0]).text})")


def _insert(gen: Generator, step: Expr, result: str) -> None:
    _, *parts = _arguments(step)
    codes = gen.operands(parts)
    insert: Callable[..., Value] = inserted if len(parts) == 2 else inserted_all
    if len(parts) == 1 and codes[0].type.kind is not TypeKind.MAP:
        insert = implementation(gen.checked.environment.functions[MAP_INSERT], gen.checked.overloads[step.id])
    gen.writer.line(f"{gen.writer.known(insert)}({result}, {', '.join(code.text for code in codes)})")


def _arguments(step: Expr) -> list[Expr]:
    assert isinstance(step, CallExpr)  # noqa: S101 - macros fold with calls
    return step.args
