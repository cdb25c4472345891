"""The macros of the language and of its extensions: calls that are rewritten before anything is checked.

In:  the target and the arguments as parsed.
Out: the expression that the call stands for, or None when the call is no macro after all (`x.bind(...)`).
"""

from __future__ import annotations

from collections.abc import Mapping

from drakit.cel.syntax.ast import (
    ACCUMULATOR,
    CallExpr,
    Comprehension,
    Expr,
    FieldEntry,
    Ident,
    ListExpr,
    Literal,
    MapEntry,
    MapExpr,
    Select,
    StructExpr,
)
from drakit.cel.syntax.parser import Macro, MacroError, Parser

UNUSED = "#unused"
SORT_INPUT = "@__sortBy_input__"


def _variable(expr: Expr, message: str = "argument must be a simple name") -> str:
    if not isinstance(expr, Ident):
        raise MacroError(expr, message)
    # Upstream has two names for the accumulator, an old and a new one, and reserves both.
    if expr.name in {ACCUMULATOR, "__result__"}:
        raise MacroError(expr, "iteration variable overwrites accumulator variable")
    return expr.name


def _two_variables(first: Expr, second: Expr) -> tuple[str, str]:
    names = _variable(first), _variable(second)
    if names[0] == names[1]:
        raise MacroError(second, f"duplicate variable name: {names[0]}")
    return names


def _split(
    args: list[Expr], *, two: bool, message: str = "argument must be a simple name"
) -> tuple[tuple[str, str], list[Expr]]:
    """The iteration variables and the remaining arguments."""
    if two:
        return _two_variables(args[0], args[1]), args[2:]
    return (_variable(args[0], message), ""), args[1:]


def _has(p: Parser, target: Expr | None, args: list[Expr], at: int) -> Expr:  # noqa: ARG001 - one shape for all macros
    selected = args[0]
    if not isinstance(selected, Select) or selected.test_only:
        raise MacroError(selected, "invalid argument to has() macro")
    return Select(p.new_id(), at, selected.operand, selected.name, test_only=True)


def _quantifier(name: str, *, two: bool) -> Macro:
    def expand(p: Parser, target: Expr | None, args: list[Expr], at: int) -> Expr:
        assert target is not None  # noqa: S101 - receiver macros are only looked up with a target
        variables, (body,) = _split(args, two=two)

        def accu() -> Ident:
            return p.ident(at, ACCUMULATOR)

        if name == "all":
            init = p.literal(at, True)
            # An error in one element does not end the loop: a later False decides.
            condition = p.call(at, "@not_strictly_false", accu())
            step = p.call(at, "_&&_", accu(), body)
        else:
            init = p.literal(at, False)
            condition = p.call(at, "@not_strictly_false", p.call(at, "!_", accu()))
            step = p.call(at, "_||_", accu(), body)
        return p.fold(at, name, target, variables, ACCUMULATOR, init, condition, step, accu())

    return expand


def _exists_one(*, two: bool) -> Macro:
    def expand(p: Parser, target: Expr | None, args: list[Expr], at: int) -> Expr:
        assert target is not None  # noqa: S101
        variables, (body,) = _split(args, two=two)
        more = p.call(at, "_+_", p.ident(at, ACCUMULATOR), p.literal(at, 1))
        # No logical operator: `exists_one` does not absorb errors.
        step = p.call(at, "_?_:_", body, more, p.ident(at, ACCUMULATOR))
        result = p.call(at, "_==_", p.ident(at, ACCUMULATOR), p.literal(at, 1))
        parts = p.literal(at, 0), p.literal(at, True), step, result
        return p.fold(at, "exists_one", target, variables, ACCUMULATOR, *parts)

    return expand


def _guarded(p: Parser, at: int, condition: Expr | None, step: Expr) -> Expr:
    """Take the step only where the condition holds."""
    return step if condition is None else p.call(at, "_?_:_", condition, step, p.ident(at, ACCUMULATOR))


def _listing(name: str, *, two: bool) -> Macro:
    """`map` and `transformList`: one element per element, or per element that passes a filter."""

    def expand(p: Parser, target: Expr | None, args: list[Expr], at: int) -> Expr:
        assert target is not None  # noqa: S101
        variables, rest = _split(args, two=two, message="argument is not an identifier")
        step: Expr = p.call(at, "_+_", p.ident(at, ACCUMULATOR), p.list_of(at, rest[-1]))
        step = _guarded(p, at, rest[0] if len(rest) == 2 else None, step)
        parts = p.list_of(at), p.literal(at, True), step, p.ident(at, ACCUMULATOR)
        return p.fold(at, name, target, variables, ACCUMULATOR, *parts)

    return expand


def _filter(p: Parser, target: Expr | None, args: list[Expr], at: int) -> Expr:
    assert target is not None  # noqa: S101
    variables, (body,) = _split(args, two=False, message="argument is not an identifier")
    added = p.call(at, "_+_", p.ident(at, ACCUMULATOR), p.list_of(at, args[0]))
    parts = p.list_of(at), p.literal(at, True), _guarded(p, at, body, added), p.ident(at, ACCUMULATOR)
    return p.fold(at, "filter", target, variables, ACCUMULATOR, *parts)


def _mapping(name: str) -> Macro:
    """`transformMap` keeps the key, `transformMapEntry` takes key and value from a map of one entry."""

    def expand(p: Parser, target: Expr | None, args: list[Expr], at: int) -> Expr:
        assert target is not None  # noqa: S101
        variables, rest = _split(args, two=True)
        key = [p.ident(at, variables[0])] if name == "transformMap" else []
        step: Expr = p.call(at, "cel.@mapInsert", p.ident(at, ACCUMULATOR), *key, rest[-1])
        step = _guarded(p, at, rest[0] if len(rest) == 2 else None, step)
        parts = MapExpr(p.new_id(), at, []), p.literal(at, True), step, p.ident(at, ACCUMULATOR)
        return p.fold(at, name, target, variables, ACCUMULATOR, *parts)

    return expand


def _bound(p: Parser, at: int, name: str, init: Expr, body: Expr) -> Expr:
    # A loop over an empty list takes no step, so `body` sees the accumulator as `init` left it, under `name`.
    parts = init, p.literal(at, False), p.ident(at, name), body
    return p.fold(at, "bind", p.list_of(at), (UNUSED, ""), name, *parts)


def _bind(p: Parser, target: Expr | None, args: list[Expr], at: int) -> Expr | None:
    if not isinstance(target, Ident) or target.name != "cel":
        return None
    if not isinstance(args[0], Ident):
        raise MacroError(args[0], "cel.bind() variable names must be simple identifiers")
    return _bound(p, at, args[0].name, args[1], args[2])


def _opt_map(name: str) -> Macro:
    def expand(p: Parser, target: Expr | None, args: list[Expr], at: int) -> Expr:
        assert target is not None  # noqa: S101
        if not isinstance(args[0], Ident):
            raise MacroError(args[0], f"{name}() variable name must be a simple identifier")
        present = p.call(at, "hasValue", target=target)
        value = p.call(at, "value", target=copied(p, target))
        mapped = _bound(p, at, args[0].name, value, args[1])
        if name == "optMap":
            mapped = p.call(at, "optional.of", mapped)
        return p.call(at, "_?_:_", present, mapped, p.call(at, "optional.none"))

    return expand


def _sort_by(p: Parser, target: Expr | None, args: list[Expr], at: int) -> Expr:
    if not isinstance(target, ListExpr | Select | Ident | Comprehension | CallExpr):
        message = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise MacroError(target or args[0], message)
    keys = _listing("map", two=False)(p, p.ident(at, SORT_INPUT), args, at)
    assert keys is not None  # noqa: S101 - map always expands
    sorted_list = p.call(at, "@sortByAssociatedKeys", keys, target=p.ident(at, SORT_INPUT))
    return _bound(p, at, SORT_INPUT, target, sorted_list)


def copied(p: Parser, expr: Expr) -> Expr:
    """A copy of an expression with new ids, for a macro that evaluates its target twice."""
    match expr:
        case Literal():
            return p.literal(expr.offset, expr.value)
        case Ident():
            return p.ident(expr.offset, expr.name)
        case Select():
            return Select(p.new_id(), expr.offset, copied(p, expr.operand), expr.name, expr.test_only)
        case CallExpr():
            target = None if expr.target is None else copied(p, expr.target)
            return p.call(expr.offset, expr.function, *(copied(p, arg) for arg in expr.args), target=target)
        case ListExpr():
            return ListExpr(p.new_id(), expr.offset, [copied(p, e) for e in expr.elements], expr.optional)
        case MapExpr():
            entries = [MapEntry(e.offset, copied(p, e.key), copied(p, e.value), e.optional) for e in expr.entries]
            return MapExpr(p.new_id(), expr.offset, entries)
        case StructExpr():
            fields = [FieldEntry(e.offset, e.name, copied(p, e.value), e.optional) for e in expr.entries]
            return StructExpr(p.new_id(), expr.offset, expr.name, fields)
        case Comprehension():
            parts = [copied(p, part) for part in (expr.init, expr.condition, expr.step, expr.result)]
            names = (expr.variable, expr.variable2)
            return p.fold(expr.offset, expr.macro, copied(p, expr.range), names, expr.accumulator, *parts)
    raise TypeError(type(expr))


STANDARD: Mapping[tuple[str, int, bool], Macro] = {
    ("has", 1, False): _has,
    ("all", 2, True): _quantifier("all", two=False),
    ("exists", 2, True): _quantifier("exists", two=False),
    ("exists_one", 2, True): _exists_one(two=False),
    ("existsOne", 2, True): _exists_one(two=False),
    ("map", 2, True): _listing("map", two=False),
    ("map", 3, True): _listing("map", two=False),
    ("filter", 2, True): _filter,
}
TWO_VARIABLES: Mapping[tuple[str, int, bool], Macro] = {
    ("all", 3, True): _quantifier("all", two=True),
    ("exists", 3, True): _quantifier("exists", two=True),
    ("existsOne", 3, True): _exists_one(two=True),
    ("exists_one", 3, True): _exists_one(two=True),
    ("transformList", 3, True): _listing("transformList", two=True),
    ("transformList", 4, True): _listing("transformList", two=True),
    ("transformMap", 3, True): _mapping("transformMap"),
    ("transformMap", 4, True): _mapping("transformMap"),
    ("transformMapEntry", 3, True): _mapping("transformMapEntry"),
    ("transformMapEntry", 4, True): _mapping("transformMapEntry"),
}
OPTIONALS: Mapping[tuple[str, int, bool], Macro] = {
    ("optMap", 2, True): _opt_map("optMap"),
    ("optFlatMap", 2, True): _opt_map("optFlatMap"),
}
BINDINGS: Mapping[tuple[str, int, bool], Macro] = {("bind", 3, True): _bind}
SORTING: Mapping[tuple[str, int, bool], Macro] = {("sortBy", 2, True): _sort_by}
ALL: Mapping[tuple[str, int, bool], Macro] = {**STANDARD, **TWO_VARIABLES, **OPTIONALS, **BINDINGS, **SORTING}
