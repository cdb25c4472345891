"""Turn a checked tree into steps. Constant parts are computed here, once.

In:  a Checked tree.
Out: a Step; ConstantFault when a constant part has no value, which makes the whole expression invalid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from drakit.cel.checking.checker import Checked
from drakit.cel.checking.declarations import implementation, is_variadic
from drakit.cel.cost.meter import Meter
from drakit.cel.errors import EvalError
from drakit.cel.evaluation.steps import (
    Activation,
    Choice,
    Computed,
    Constant,
    Fallback,
    Fold,
    Invocation,
    ListStep,
    Logical,
    MapStep,
    Membership,
    MessageStep,
    PathStep,
    Qualifier,
    Step,
    ValuePath,
    VariablePath,
)
from drakit.cel.library.patterns import pattern
from drakit.cel.syntax.ast import CallExpr, Comprehension, Expr, Ident, ListExpr, Literal, MapExpr, Select, StructExpr
from drakit.cel.values import TypeValue, Uint, Value

_CONVERSIONS = frozenset(["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"])
_PATTERNS = frozenset({"matches", "find", "findAll"})
_PRIMITIVES = frozenset({bool, float, int, str, Uint})
_KEYS = frozenset({bool, float, int, str, Uint})


class ConstantFault(Exception):
    """A constant part that has no value."""

    def __init__(self, at: Expr, message: str) -> None:
        super().__init__(message)
        self.offset = at.offset


def plan(checked: Checked) -> Step:
    """The steps of an expression."""
    return _Planner(checked).step(checked.tree.root)


def evaluate(step: Step, variables: dict[str, Value], meter: Meter) -> Value:
    """Run the steps on variables; the result may be an EvalError."""
    return step.value(Activation(variables, meter))


@dataclass(slots=True)
class _Planner:
    checked: Checked
    bound: list[str] = field(default_factory=list)

    def step(self, expr: Expr) -> Step:
        match expr:
            case Literal():
                return Constant(expr.id, expr.value)
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
                return MessageStep(expr.id, expr.name.removeprefix("."), self._fields(expr))
            case Comprehension():
                return self._fold(expr)
        raise TypeError(type(expr))

    def _name(self, expr: Expr) -> Step:
        name = self.checked.names[expr.id]
        known = self.checked.environment.types.get(name)
        # A variable hides a type of the same name, as in the checker.
        if known is not None and name not in self.bound and name not in self.checked.environment.variables:
            return Constant(expr.id, TypeValue(known.name))
        return PathStep(VariablePath(expr.id, name))

    def _select(self, expr: Select) -> Step:
        if expr.id in self.checked.names:
            return self._name(expr)
        path = _path_of(self.step(expr.operand))
        path.extend(Qualifier(expr.id, expr.name, test=expr.test_only))
        return PathStep(path, test=expr.id if expr.test_only else None)

    def _call(self, expr: CallExpr) -> Step:
        parts = ([expr.target] if expr.target is not None else []) + expr.args
        args = [self.step(part) for part in parts]
        match expr.function:
            case "_&&_":
                return Logical(expr.id, args, decisive=False)
            case "_||_":
                return Logical(expr.id, args, decisive=True)
            case "_?_:_":
                return PathStep(Choice(expr.id, args[0], _branch(args[1]), _branch(args[2])))
            case "_[_]":
                return _indexed(expr, args, optional=False)
            case "_[?_]" | "_?._":
                return _indexed(expr, args, optional=True)
            case "or" | "orValue":
                return Fallback(expr.id, args[0], args[1], unwrap=expr.function == "orValue")
            case "@in" if self.checked.overloads[expr.id] == ("in_list",) and isinstance(args[1], Constant):
                if (step := _membership(expr.id, args[0], args[1].held)) is not None:
                    return step
        return self._invocation(expr, args)

    def _invocation(self, expr: CallExpr, args: list[Step]) -> Step:
        function = self.checked.environment.functions[expr.function]
        overloads = self.checked.overloads[expr.id]
        overload = overloads[0] if len(overloads) == 1 else ""
        step = Invocation(
            expr.id,
            expr.function,
            overload,
            args,
            implementation(function, overloads),
            variadic=is_variadic(function, overloads, len(args)),
            strict=expr.function != "@not_strictly_false",
        )
        if expr.function in _CONVERSIONS and len(args) == 1 and isinstance(args[0], Constant):
            # As upstream: conversions of constants and constant patterns fail at compile time, other constant calls at
            # run time.
            return Constant(expr.id, _computed(step, expr))
        if expr.function in _PATTERNS and isinstance(args[1], Constant) and isinstance(args[1].held, str):
            try:
                pattern(args[1].held)
            except EvalError as error:
                raise ConstantFault(expr, error.message) from None
            step.variadic = True
        return step

    def _list(self, expr: ListExpr) -> Step:
        parts = [self.step(part) for part in expr.elements]
        step = ListStep(expr.id, parts, expr.optional)
        return Constant(expr.id, step.value(_nowhere())) if _all_constant(parts) else step

    def _map(self, expr: MapExpr) -> Step:
        entries = [(self.step(e.key), self.step(e.value), e.optional) for e in expr.entries]
        step = MapStep(expr.id, entries)
        constant = _all_constant([part for key, value, _ in entries for part in (key, value)])
        return Constant(expr.id, step.value(_nowhere())) if constant else step

    def _fields(self, expr: StructExpr) -> list[tuple[str, Step, bool]]:
        return [(entry.name, self.step(entry.value), entry.optional) for entry in expr.entries]

    def _fold(self, expr: Comprehension) -> Step:
        init, over = self.step(expr.init), self.step(expr.range)
        names = [expr.accumulator, expr.variable, *filter(None, [expr.variable2])]
        self.bound.extend(names)
        parts = self.step(expr.condition), self.step(expr.step), self.step(expr.result)
        del self.bound[-len(names) :]
        # The accumulator of `bind` is a value of the user, which nobody may change in place.
        grows = expr.macro != "bind"
        return Fold(expr.id, over, expr.variable, expr.variable2, expr.accumulator, init, *parts, grows)


def _nowhere() -> Activation:
    return Activation({}, Meter())


def _all_constant(parts: Sequence[Step]) -> bool:
    return all(isinstance(part, Constant) for part in parts)


def _computed(step: Step, expr: Expr) -> Value:
    value = step.value(_nowhere())
    if isinstance(value, EvalError):
        raise ConstantFault(expr, value.message)
    return value


def _path_of(step: Step) -> ValuePath:
    """The path of a step, for the caller to extend. A step that is no path becomes the start of one."""
    return step.path if isinstance(step, PathStep) else Computed(step.id, step)


def _branch(step: Step) -> ValuePath:
    return step.path if isinstance(step, PathStep) else Computed(step.id, step)


def _indexed(expr: CallExpr, args: list[Step], *, optional: bool) -> Step:
    container, index = args
    path = _path_of(container)
    if isinstance(index, Constant):
        if index.held.__class__ not in _KEYS:
            raise ConstantFault(expr, f"invalid qualifier type: {index.held!r}")
        path.extend(Qualifier(expr.id, index.held, optional=optional))
    else:
        key = index.path if isinstance(index, PathStep) else Computed(expr.id, index)
        path.extend(Qualifier(expr.id, path=key, optional=optional))
    return PathStep(path)


def _membership(step_id: int, arg: Step, members: tuple[Value, ...]) -> Step | None:
    """`in` as a set lookup, when all members are plain values. With an empty list, `arg` is not even evaluated."""
    if not members:
        return Constant(step_id, False)
    if not all(member.__class__ in _PRIMITIVES for member in members):
        return None
    return Membership(step_id, arg, member_test(members))


def member_test(members: tuple[Value, ...]) -> Callable[[Value], bool]:
    """Whether a value is one of these plain values; numbers match across types, bools only bools."""
    # Apart, as Python takes True for 1 and False for 0.
    plain = frozenset(member for member in members if member.__class__ is not bool)
    bools = frozenset(member for member in members if member.__class__ is bool)

    def test(value: Value) -> bool:
        kind = value.__class__
        if kind is bool:
            return value in bools
        return kind in _PRIMITIVES and value in plain

    return test
