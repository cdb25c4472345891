"""Turn a checked tree into one Python function: the fast way to evaluate, without counting the cost.

In:  a Checked tree, and where the function finds its variables.
Out: a callable, or None where Python cannot hold the expression in one function (then the counted steps are used).

Errors are exceptions here. `&&`, `||`, `all` and `exists` catch them, but only where one can occur. A missing key of a
map is the KeyError of the dict. Static types save checks at run time. Where a type is dynamic, the operator checks it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any

from drakit.cel import operators
from drakit.cel.checking.checker import Checked
from drakit.cel.checking.types import BOOL, Type, TypeKind, is_optional
from drakit.cel.errors import EvalError
from drakit.cel.generation.calls import emit_call
from drakit.cel.generation.honesty import Unsuited, require_honest_types
from drakit.cel.generation.loops import emit_comprehension
from drakit.cel.generation.operators import as_bool, select
from drakit.cel.generation.writer import Fragment, Writer
from drakit.cel.syntax.ast import (
    CallExpr,
    Comprehension,
    Expr,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Select,
    StructExpr,
    walk,
)
from drakit.cel.values import NONE, Optional, TypeValue, Value, map_key

ERRORS = (EvalError, KeyError)
Lookup = tuple[str, str, str]


def as_eval_error(error: Exception) -> EvalError | None:
    """The EvalError for an exception of generated code; None when the exception is no error of the expression."""
    if isinstance(error, EvalError):
        return error
    return EvalError(f"no such key: {operators.text_of(error.args[0])}") if isinstance(error, KeyError) else None


@dataclass(frozen=True, slots=True)
class Results:
    """What the function returns for True, for False, for any other value, and for an error (with its argument).

    An error for which `as_eval_error` returns None is a limit of Python, or a bug of the engine.
    """

    true: object
    false: object
    other: Callable[[Value], object]
    error: Callable[[Exception, Any], object]


def generate(checked: Checked, attributes: Mapping[str, str], results: Results) -> Callable[[Any], Any] | None:
    """A function of one object that has the variables as `attributes`; it never raises what an expression may cause."""
    try:
        require_honest_types(checked)
        generator = Generator(checked)
        for variable, attribute in attributes.items():
            generator.bind_argument(variable, attribute)
        generator.share_lookups()
        return generator.function(results)
    # SyntaxError and MemoryError: Python limits how deeply source may be nested.
    except (Unsuited, SyntaxError, MemoryError):
        return None


@dataclass(slots=True)
class Generator:
    """Emits one expression. `scope` holds the Fragment of each variable."""

    checked: Checked
    writer: Writer = field(default_factory=Writer)
    scope: dict[str, Fragment] = field(default_factory=dict)
    shared: dict[Lookup, Fragment] = field(default_factory=dict)

    def bind_argument(self, variable: str, attribute: str) -> None:
        # The attribute's name is the host's, never the expression's.
        if not attribute.isidentifier():
            raise ValueError(attribute)
        self.writer.line(f"{variable}_ = argument.{attribute}")
        declared = self.checked.environment.variables[variable]
        self.scope[variable] = Fragment(f"{variable}_", declared, raises=False, atom=True)

    def share_lookups(self) -> None:
        """Move a lookup that occurs several times, and cannot fail, to the start: `device.attributes["a"]`."""
        nodes = list(walk(self.checked.tree.root))
        folds = [node for node in nodes if isinstance(node, Comprehension)]
        if any(name in self.scope for node in folds for name in (node.accumulator, node.variable, node.variable2)):
            return  # a variable is bound anew somewhere: the same text may stand for two things
        found = [
            (key, node) for node in nodes if isinstance(node, CallExpr) and (key := self._lookup(node)) is not None
        ]
        uses = Counter(key for key, _ in found)
        for key, node in found:
            if uses[key] > 1 and key not in self.shared:
                self.shared[key] = self.writer.spilled(emit_call(self, node))

    def _lookup(self, expr: CallExpr) -> Lookup | None:
        """Variable, field and key of a lookup, when its map is one of the host in which no lookup fails."""
        match expr:
            case CallExpr(function="_[_]", args=[Select(operand=Ident()) as held, Literal(value=str() as key)]):
                variable = self.checked.names[held.operand.id]
                return (variable, held.name, key) if self.is_total(held) else None
        return None

    def function(self, results: Results) -> Callable[[Any], Any]:
        writer = self.writer
        with writer.captured() as body:
            code = self.expr(self.checked.tree.root)
            yes, no = writer.known(results.true), writer.known(results.false)
            if code.type == BOOL:
                writer.line(f"return {yes} if {code.text} else {no}")
            else:
                value = writer.spilled(code).text
                other = f"{writer.known(results.other)}({value})"
                writer.line(f"return {yes} if {value} is True else {no} if {value} is False else {other}")
        lines = [(1, "try:"), *((level + 2, text) for level, text in [*writer.lines, *body])]
        # One handler around everything costs nothing as long as nothing is raised.
        lines += [(1, "except Exception as error:"), (2, "return on_error(error, argument)")]
        # No text of the expression is in it: names are ours, and values come in as globals.
        source = "def evaluate(argument):\n" + "\n".join("    " * level + text for level, text in lines)
        names = {**writer.names, "ERRORS": ERRORS, "on_error": results.error, "__builtins__": _BUILTINS}
        module = compile(source, "<expression>", "exec", dont_inherit=True)
        code_object = next(constant for constant in module.co_consts if isinstance(constant, CodeType))
        return FunctionType(code_object, names)

    # --- parts

    def type_of(self, expr: Expr) -> Type:
        return self.checked.types[expr.id]

    def expr(self, expr: Expr) -> Fragment:
        match expr:
            case Literal():
                return self.writer.constant(expr.value, self.type_of(expr))
            case Ident():
                return self._name(expr)
            case Select():
                return self._select(expr)
            case CallExpr():
                return self._call(expr)
            case ListExpr():
                return self._list(expr)
            case MapExpr():
                return self._map(expr)
            case StructExpr():
                raise Unsuited("messages are constructed step by step")
            case Comprehension():
                return emit_comprehension(self, expr)
        raise TypeError(type(expr))

    def operands(self, exprs: list[Expr]) -> list[Fragment]:
        """The code of all operands, evaluated from left to right even if some of them need statements."""
        codes: list[Fragment] = []
        for part in exprs:
            mark = len(self.writer.lines)
            code = self.expr(part)
            # This operand needed statements, which run first: earlier operands move before them, to keep the order of
            # errors.
            if len(self.writer.lines) > mark:
                for index, earlier in enumerate(codes):
                    if not earlier.atom:
                        codes[index] = self.writer.spilled(earlier, mark)
                        mark += 1
            codes.append(code)
        return codes

    def _name(self, expr: Expr) -> Fragment:
        name = self.checked.names[expr.id]
        if name in self.scope:
            return self.scope[name]
        return self.writer.constant(TypeValue(self.checked.environment.types[name].name), self.type_of(expr))

    def _select(self, expr: Select) -> Fragment:
        if expr.id in self.checked.names:
            return self._name(expr)
        container = self.expr(expr.operand)
        key = self.writer.constant(expr.name, self.type_of(expr))
        total = self.is_total(expr.operand)
        if not expr.test_only:
            return select(self.writer, container, key, self.type_of(expr), total=total)
        if is_optional(container.type):
            found = self.writer.call(operators.optional_element, container, key)
            return Fragment(f"{found.text}.present", BOOL, raises=True)
        if container.type.kind is TypeKind.MAP and container.type.params[1].kind is not TypeKind.MAP:
            return Fragment(f"({key.text} in {container.text})", BOOL, container.raises)
        return self.writer.call(_has, container, key, t=BOOL)

    def is_total(self, expr: Expr) -> bool:
        """Whether an expression is a map of the host's that answers every lookup."""
        if not isinstance(expr, Select):
            return False
        holder = self.type_of(expr.operand)
        return holder.kind is TypeKind.STRUCT and (holder.name, expr.name) in self.checked.environment.total

    def _call(self, expr: CallExpr) -> Fragment:
        if self.shared and (key := self._lookup(expr)) is not None and key in self.shared:
            return self.shared[key]
        match expr.function:
            case "_&&_":
                return self._logical(expr, decisive="False")
            case "_||_":
                return self._logical(expr, decisive="True")
            case "_?_:_":
                return self._conditional(expr)
        return emit_call(self, expr)

    def _conditional(self, expr: CallExpr) -> Fragment:
        writer, t = self.writer, self.type_of(expr)
        condition = as_bool(writer, self.expr(expr.args[0]))
        with writer.captured() as then_lines:
            then = self.expr(expr.args[1])
        with writer.captured() as other_lines:
            other = self.expr(expr.args[2])
        raises = condition.raises or then.raises or other.raises
        if not then_lines and not other_lines:
            return Fragment(f"({then.text} if {condition.text} else {other.text})", t, raises)
        name = writer.name()
        with writer.indented(f"if {condition.text}:"):
            writer.place(then_lines)
            writer.line(f"{name} = {then.text}")
        with writer.indented("else:"):
            writer.place(other_lines)
            writer.line(f"{name} = {other.text}")
        return Fragment(name, t, raises=False, atom=True)

    def _logical(self, expr: CallExpr, decisive: str) -> Fragment:
        """`&&` and `||`. An error waits until all terms have had their chance to decide."""
        writer = self.writer
        terms: list[tuple[Fragment, list[tuple[int, str]]]] = []
        for part in expr.args:
            with writer.captured() as lines:
                term = as_bool(writer, self.expr(part))
            terms.append((term, lines))
        if not any(lines for _, lines in terms) and not any(term.raises for term, _ in terms[:-1]):
            word = " and " if decisive == "False" else " or "
            return Fragment(f"({word.join(term.text for term, _ in terms)})", BOOL, terms[-1][0].raises)
        return self._staged(terms, decisive)

    def _staged(self, terms: list[tuple[Fragment, list[tuple[int, str]]]], decisive: str) -> Fragment:
        writer, result, error = self.writer, self.writer.name(), self.writer.name()
        level = writer.level
        proceed = f"if {result}:" if decisive == "False" else f"if not {result}:"
        neutral = "True" if decisive == "False" else "False"
        writer.line(f"{error} = None")
        for index, (term, lines) in enumerate(terms):
            if index:
                writer.line(proceed)
                writer.level += 1
            if not term.raises and not lines:
                writer.line(f"{result} = {term.text}")
                continue
            with writer.indented("try:"):
                writer.place(lines)
                writer.line(f"{result} = {term.text}")
            with writer.indented("except ERRORS as caught:"):
                # The first error is kept, as upstream: it is raised if no term decides.
                writer.line(f"{error} = {error} or caught")
                writer.line(f"{result} = {neutral}")
        writer.level = level
        writer.line(f"if {error} is not None and {result} is {neutral}: raise {error}")
        return Fragment(result, BOOL, raises=False, atom=True)

    # --- literals

    def _list(self, expr: ListExpr) -> Fragment:
        codes, t = self.operands(expr.elements), self.type_of(expr)
        if not expr.optional and all(code.constant for code in codes):
            return self.writer.constant(tuple(code.value for code in codes), t)
        raises = any(code.raises for code in codes)
        inner = "".join(f"{code.text}, " for code in codes)
        if not expr.optional:
            return Fragment(f"({inner})", t, raises)
        return Fragment(f"{self.writer.known(_with_optionals)}(({inner}), {self.writer.known(expr.optional)})", t, True)

    def _map(self, expr: MapExpr) -> Fragment:
        codes, t = self.operands([part for e in expr.entries for part in (e.key, e.value)]), self.type_of(expr)
        optional = frozenset(index for index, entry in enumerate(expr.entries) if entry.optional)
        if not optional and all(code.constant for code in codes):
            pairs = zip(codes[::2], codes[1::2], strict=True)
            return self.writer.constant({map_key(key.value): value.value for key, value in pairs}, t)
        inner = "".join(f"{code.text}, " for code in codes)
        text = f"{self.writer.known(_mapped)}(({inner}), {self.writer.known(optional)})"
        return Fragment(text, t, bool(optional) or any(code.raises for code in codes))


_BUILTINS = {"len": len, "enumerate": enumerate, "tuple": tuple, "dict": dict, "Exception": Exception}


def _has(container: Value, key: str) -> bool:
    if container.__class__ is Optional:
        return operators.optional_element(container, key).present
    return operators.element_if_present(container, key)[1]


def _unwrapped(value: Value) -> Optional:
    if value.__class__ is not Optional:
        message = f"cannot initialize optional element from non-optional value {operators.text_of(value)}"
        raise EvalError(message)
    return value if isinstance(value, Optional) else NONE


def _with_optionals(values: tuple[Value, ...], optional: frozenset[int]) -> tuple[Value, ...]:
    held: list[Value] = []
    for index, value in enumerate(values):
        if index not in optional:
            held.append(value)
        elif (given := _unwrapped(value)).present:
            held.append(given.value)
    return tuple(held)


def _mapped(parts: tuple[Value, ...], optional: frozenset[int]) -> dict[Any, Any]:
    held: dict[Any, Any] = {}
    for index in range(0, len(parts), 2):
        key, value = map_key(parts[index]), parts[index + 1]
        if index // 2 not in optional:
            held[key] = value
        elif (given := _unwrapped(value)).present:
            held[key] = given.value
        else:
            held.pop(key, None)
    return held
