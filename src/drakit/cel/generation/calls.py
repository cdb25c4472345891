"""Python for calls of functions: operators, optionals, and everything of the libraries.

A call whose arguments are all constant is made now. A call whose static types settle the overload goes straight to it;
otherwise the guard that looks at the values comes first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from drakit.cel import operators
from drakit.cel.checking.declarations import Overload, implementation
from drakit.cel.checking.types import BOOL, STRING, Type, TypeKind, is_dynamic, is_optional
from drakit.cel.errors import EvalError
from drakit.cel.generation import operators as inline
from drakit.cel.generation.honesty import Unsuited
from drakit.cel.generation.writer import Fragment
from drakit.cel.library.patterns import searcher
from drakit.cel.library.quantities import QUANTITY
from drakit.cel.syntax.ast import CallExpr, Expr, ListExpr, Literal
from drakit.cel.values import weight

if TYPE_CHECKING:
    from drakit.cel.generation.functions import Generator

_ORDER = {"_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">="}
_ARITHMETIC = {"_+_": "+", "_-_": "-", "_*_": "*", "_/_": "/", "_%_": "%"}
_QUANTITY_ORDER = {"isGreaterThan": ">", "isLessThan": "<"}
_NEVER_FOLDED = frozenset({"lists.range", "dyn"})
_MAX_FOLDED = 256  # constants may not grow out of constants
_STRING_TESTS = {"startsWith": "{0}.startswith({1})", "endsWith": "{0}.endswith({1})", "contains": "({1} in {0})"}
_CONTAINS_IN_ORDER = "{0}.__contains__({1})"  # where the error of the text must come before that of the part


def emit_call(gen: Generator, expr: CallExpr) -> Fragment:
    """A call that is neither logical nor a choice."""
    match expr.function:
        case "_[?_]" | "_?._":
            return _optional_access(gen, expr)
        case "or" | "orValue" | "hasValue":
            return _fallback(gen, expr)
    if (compared := _compared_quantities(gen, expr)) is not None:
        return compared
    parts = ([expr.target] if expr.target is not None else []) + expr.args
    args = _container_and_key(gen, parts) if expr.function == "_[_]" else gen.operands(parts)
    if all(arg.constant for arg in args) and (folded := _folded(gen, expr, args)) is not None:
        return folded
    return _operator(gen, expr, args) or _library(gen, expr, args)


def _folded(gen: Generator, expr: CallExpr, args: list[Fragment]) -> Fragment | None:
    """The value of a constant call; one that fails is left to fail at run time, where `||` may absorb it."""
    # A large constant would be built at compile time, for which nobody is charged.
    if expr.function in _NEVER_FOLDED or sum(weight(arg.value, _MAX_FOLDED) for arg in args) > _MAX_FOLDED:
        return None
    function = gen.checked.environment.functions[expr.function]
    try:
        value = implementation(function, gen.checked.overloads[expr.id])(*(arg.value for arg in args))
    except EvalError:
        return None
    return gen.writer.constant(value, gen.type_of(expr))


def _operator(gen: Generator, expr: CallExpr, args: list[Fragment]) -> Fragment | None:
    writer, name, t = gen.writer, expr.function, gen.type_of(expr)
    match name:
        case "_==_":
            return inline.equality(writer, *args)
        case "_!=_":
            return inline.inequality(writer, *args)
        case "!_":
            return inline.negated(writer, args[0])
        case "-_":
            return inline.negation(writer, args[0], t)
        case "@in":
            return inline.membership(writer, *args, literal=isinstance(expr.args[1], ListExpr))
        case "_[_]":
            return inline.index(writer, args[0], args[1], t, total=gen.is_total(expr.args[0]))
    if name in _ORDER:
        return inline.ordering(writer, _ORDER[name], *args)
    if name in _ARITHMETIC:
        return inline.arithmetic(writer, _ARITHMETIC[name], args[0], args[1], t)
    return None


# --- functions of the libraries


def _library(gen: Generator, expr: CallExpr, args: list[Fragment]) -> Fragment:
    writer, t = gen.writer, gen.type_of(expr)
    raises = any(arg.raises for arg in args)
    all_strings = all(arg.type == STRING for arg in args)
    if expr.function == "size" and args[0].type.kind in {TypeKind.STRING, TypeKind.BYTES, TypeKind.LIST, TypeKind.MAP}:
        return Fragment(f"len({args[0].text})", t, raises)
    if expr.function in _STRING_TESTS and all_strings:
        # Python's `in` evaluates the needle first. Where both sides may raise, the order decides which error is told.
        backwards = expr.function == "contains" and args[0].raises and args[1].raises
        template = _CONTAINS_IN_ORDER if backwards else _STRING_TESTS[expr.function]
        return Fragment(template.format(args[0].text, args[1].text), BOOL, raises)
    if expr.function == "matches" and all_strings and args[1].constant:
        search = writer.known(searcher(args[1].value))
        return Fragment(f"({search}({args[0].text}) is not None)", BOOL, raises)
    function = gen.checked.environment.functions[expr.function]
    overloads = gen.checked.overloads[expr.id]
    overload = function.overload(overloads[0])
    # One overload that fits the static types: called without a look at the classes of the arguments.
    if len(overloads) == 1 and _settled(overload, args):
        called = function.single or overload.call
        return writer.call(called, *args, t=t, raises=overload.raises)
    return writer.call(implementation(function, overloads), *args, t=t)


def _settled(overload: Overload, args: list[Fragment]) -> bool:
    """Whether the static types make checks at run time unnecessary."""
    return all(_fits(wanted, arg.type) for wanted, arg in zip(overload.args, args, strict=True))


def _fits(wanted: Type, given: Type) -> bool:
    if wanted.kind is TypeKind.PARAM or is_dynamic(wanted):
        return True
    if wanted.kind is not given.kind or wanted.name != given.name:
        return False
    return all(map(_fits, wanted.params, given.params))


# --- quantities


def _compared_quantities(gen: Generator, expr: CallExpr) -> Fragment | None:
    """`a.compareTo(b) >= 0`, `a.isLessThan(b)`: one comparison of amounts."""
    symbol = _QUANTITY_ORDER.get(expr.function)
    call: Expr = expr
    if symbol is None:
        symbol = "==" if expr.function == "_==_" else "!=" if expr.function == "_!=_" else _ORDER.get(expr.function)
        if symbol is None or not _is_zero(expr.args[1]):
            return None
        call = expr.args[0]
        if not isinstance(call, CallExpr) or call.function != "compareTo":
            return None
    if not isinstance(call, CallExpr) or call.target is None:
        return None
    if gen.type_of(call.target) != QUANTITY or gen.type_of(call.args[0]) != QUANTITY:
        return None
    # Both are quantities by their static type, so the amounts can be compared without a call.
    left, right = gen.operands([call.target, call.args[0]])
    amount = gen.writer.known(right.value.nanos) if right.constant else f"{right.text}.nanos"
    return Fragment(f"({left.text}.nanos {symbol} {amount})", BOOL, left.raises or right.raises)


def _is_zero(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value.__class__ is int and expr.value == 0


# --- optionals


def _plain_access(gen: Generator, expr: Expr) -> tuple[Fragment, Fragment] | None:
    """Container and key of `m.?key` on a map that is a plain dict with string keys."""
    if not isinstance(expr, CallExpr) or expr.function not in {"_[?_]", "_?._"}:
        return None
    held = gen.type_of(expr.args[0])
    if held.kind is not TypeKind.MAP or held.params[1].kind is TypeKind.MAP or gen.type_of(expr.args[1]) != STRING:
        return None
    container, key = gen.operands(expr.args)
    return container, key


def _container_and_key(gen: Generator, parts: list[Expr]) -> list[Fragment]:
    """The key is not evaluated when the container is an empty optional, so an error of the key does not count then."""
    held = gen.type_of(parts[0])
    if isinstance(parts[1], Literal) or not (is_dynamic(held) or is_optional(held)):
        return gen.operands(parts)
    with gen.writer.captured() as lines:
        key = gen.expr(parts[1])
    # The key could raise before the container is looked at; the counted steps have the right order.
    if lines or key.raises:
        raise Unsuited
    return gen.operands(parts)


def _optional_access(gen: Generator, expr: CallExpr) -> Fragment:
    container, key = _container_and_key(gen, expr.args)
    raises = container.type.kind is not TypeKind.MAP or is_dynamic(key.type)
    return gen.writer.call(operators.optional_element, container, key, t=gen.type_of(expr), raises=raises)


def _fallback(gen: Generator, expr: CallExpr) -> Fragment:
    t = gen.type_of(expr)
    assert expr.target is not None  # noqa: S101 - the checker resolved a method
    simple = expr.function == "hasValue" or (expr.function == "orValue" and isinstance(expr.args[0], Literal))
    if simple and (plain := _plain_access(gen, expr.target)) is not None:
        container, key = plain
        raises = container.raises or key.raises
        if expr.function == "hasValue":
            return Fragment(f"({key.text} in {container.text})", BOOL, raises)
        default = gen.expr(expr.args[0])
        return Fragment(f"{container.text}.get({key.text}, {default.text})", t, raises)
    optional = gen.expr(expr.target)
    if expr.function == "hasValue":
        if is_optional(optional.type):
            return Fragment(f"{optional.text}.present", BOOL, optional.raises)
        return _library(gen, expr, [optional])
    return _chosen(gen, expr, optional, t)


def _chosen(gen: Generator, expr: CallExpr, optional: Fragment, t: Type) -> Fragment:
    """`or` and `orValue`: the right side is only computed when the left holds nothing."""
    writer, result = gen.writer, gen.writer.name()
    # Into a variable: the text is used twice, and must be evaluated once.
    given = writer.spilled(optional).text
    with writer.indented(f"if {given}.present:"):
        writer.line(f"{result} = {given}.held" if expr.function == "orValue" else f"{result} = {given}")
    with writer.indented("else:"):
        writer.line(f"{result} = {gen.expr(expr.args[0]).text}")
    return Fragment(result, t, raises=False, atom=True)
