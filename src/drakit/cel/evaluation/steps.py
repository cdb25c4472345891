"""The steps of an evaluation in which every step is counted or traced.

In:  a scope that knows the variables and the meter.
Out: a value per step. Here errors are values: an EvalError is returned, not raised, until it surfaces.

A path such as `device.attributes["a"].b` is one step with qualifiers. A choice `c ? a : b` picks one of two paths. Each
has its own cost. The steps are those of upstream's plan of a program, because the cost has to be the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from drakit.cel.cost.meter import Meter
from drakit.cel.cost.sizes import LIST_COST, MAP_COST, STRUCT_COST
from drakit.cel.errors import EvalError, no_such_overload
from drakit.cel.operators import element, element_if_present, text_of
from drakit.cel.values import NONE, GrowingList, GrowingMap, Message, Optional, Value, keys, map_key, type_name


class Activation:
    """The variables of an evaluation."""

    def __init__(self, variables: dict[str, Value], meter: Meter) -> None:
        self._variables = variables
        self.meter = meter

    def lookup(self, name: str) -> Value:
        if name in self._variables:
            return self._variables[name]
        return EvalError(f"no such attribute(s): {name}")


class Step(ABC):
    """A part of a plan."""

    id: int

    @abstractmethod
    def value(self, scope: Activation) -> Value:
        """Compute the value and report it to the meter."""


@dataclass(slots=True)
class Constant(Step):
    id: int
    held: Value

    def value(self, scope: Activation) -> Value:
        scope.meter.pushed(self.id, self.held)
        return self.held


@dataclass(slots=True)
class Invocation(Step):
    """A function on its arguments; `variadic` stops at the first argument that is an error."""

    id: int
    function: str
    overload: str
    args: Sequence[Step]
    call: Callable[..., Value]
    variadic: bool
    strict: bool = True

    def value(self, scope: Activation) -> Value:
        result = self._result(scope)
        scope.meter.charge_call(self.function, self.overload, [arg.id for arg in self.args], result)
        scope.meter.pushed(self.id, result)
        return result

    def _result(self, scope: Activation) -> Value:
        values: list[Value] = []
        for arg in self.args:
            values.append(arg.value(scope))
            if self.variadic and values[-1].__class__ is EvalError:
                return values[-1]
        if self.strict:
            for value in values:
                if value.__class__ is EvalError:
                    return value
        scope.meter.foresee(self.overload, values)
        try:
            return self.call(*values)
        except EvalError as error:
            return error


@dataclass(slots=True)
class Membership(Step):
    """`x in [constants]`."""

    id: int
    arg: Step
    test: Callable[[Value], bool]

    def value(self, scope: Activation) -> Value:
        value = self.arg.value(scope)
        result = value if value.__class__ is EvalError else self.test(value)
        scope.meter.pushed(self.id, result)
        return result


@dataclass(slots=True)
class Fallback(Step):
    """`or` and `orValue`: the right side is evaluated only when the left holds nothing."""

    id: int
    optional: Step
    other: Step
    unwrap: bool

    def value(self, scope: Activation) -> Value:
        result = self.optional.value(scope)
        if result.__class__ is Optional:
            if not result.present:
                result = self.other.value(scope)
            elif self.unwrap:
                result = result.value
        scope.meter.pushed(self.id, result)
        return result


@dataclass(slots=True)
class Logical(Step):
    """`&&` and `||`: `decisive` on any side decides, whatever the others are."""

    id: int
    terms: Sequence[Step]
    decisive: bool

    def value(self, scope: Activation) -> Value:
        result = self._result(scope)
        # Upstream does not charge `&&` and `||`, but their terms leave the stack.
        scope.meter.drop(*(term.id for term in self.terms))
        scope.meter.pushed(self.id, result)
        return result

    def _result(self, scope: Activation) -> Value:
        error: EvalError | None = None
        for term in self.terms:
            value = term.value(scope)
            # The first decisive term ends it; errors of terms before it do not count.
            if value is self.decisive:
                return value
            if value.__class__ is not bool and error is None:
                error = value if value.__class__ is EvalError else no_such_overload()
        return not self.decisive if error is None else error


@dataclass(slots=True)
class ListStep(Step):
    id: int
    elements: Sequence[Step]
    optional: frozenset[int]

    def value(self, scope: Activation) -> Value:
        result = self._result(scope)
        scope.meter.take([part.id for part in self.elements])
        scope.meter.cost += LIST_COST
        scope.meter.pushed(self.id, result)
        return result

    def _result(self, scope: Activation) -> Value:
        held: list[Value] = []
        for index, part in enumerate(self.elements):
            value = part.value(scope)
            if value.__class__ is EvalError:
                return value
            if index in self.optional:
                if value.__class__ is not Optional:
                    return EvalError(
                        f"cannot initialize optional list element from non-optional value {text_of(value)}"
                    )
                if not value.present:
                    continue
                value = value.value
            held.append(value)
        return tuple(held)


@dataclass(slots=True)
class MapStep(Step):
    id: int
    entries: Sequence[tuple[Step, Step, bool]]

    def value(self, scope: Activation) -> Value:
        result = self._result(scope)
        scope.meter.take([part.id for key, value, _ in self.entries for part in (key, value)])
        scope.meter.cost += MAP_COST
        scope.meter.pushed(self.id, result)
        return result

    def _result(self, scope: Activation) -> Value:
        held: dict[Any, Any] = {}
        for key_step, value_step, optional in self.entries:
            key = key_step.value(scope)
            if key.__class__ is EvalError:
                return key
            value = value_step.value(scope)
            if value.__class__ is EvalError:
                return value
            if optional:
                if value.__class__ is not Optional:
                    return EvalError(f"cannot initialize optional entry '{text_of(key)}' from non-optional value")
                if not value.present:
                    # An absent optional also removes an earlier entry of the same key.
                    held.pop(map_key(key), None)
                    continue
                value = value.value
            held[map_key(key)] = value
        return held


@dataclass(slots=True)
class MessageStep(Step):
    id: int
    name: str
    fields: Sequence[tuple[str, Step, bool]]

    def value(self, scope: Activation) -> Value:
        result = self._result(scope)
        scope.meter.take([part.id for _, part, _ in self.fields])
        scope.meter.cost += STRUCT_COST
        scope.meter.pushed(self.id, result)
        return result

    def _result(self, scope: Activation) -> Value:
        held = Message(self.name)
        for name, part, optional in self.fields:
            value = part.value(scope)
            if value.__class__ is EvalError:
                return value
            if optional:
                if value.__class__ is not Optional:
                    return EvalError(f"cannot initialize optional entry '{name}' from non-optional value")
                if not value.present:
                    continue
                value = value.value
            held[name] = value
        return held


# --- paths


@dataclass(slots=True)
class Qualifier:
    """One hop of a path: by a constant `key`, or by the value of another path. `test` only asks for presence."""

    id: int
    key: Value = None
    path: ValuePath | None = None
    optional: bool = False
    test: bool = False

    def apply(self, scope: Activation, container: Value, *, if_present: bool) -> tuple[Value, bool]:
        """The element (an EvalError where there is none) and whether it is there."""
        key = self.key if self.path is None else self.path.resolve(scope)
        try:
            if key.__class__ is EvalError:
                raise key
            if if_present:
                value, present = element_if_present(container, key)
            elif self.test:
                value, present = element_if_present(container, key)[1], True
            else:
                value, present = element(container, key), True
        except EvalError as error:
            if if_present:
                return error, True
            value, present = error, True
        if present:
            scope.meter.cost += 1
            scope.meter.pushed(self.id, value)
        return value, present


class ValuePath(ABC):
    """The way to a value: where it starts, and the qualifiers behind that. `PathStep` makes a step of it."""

    @property
    @abstractmethod
    def id(self) -> int:
        """The node that stands for the whole path in the meter."""

    @abstractmethod
    def resolve(self, scope: Activation) -> Value:
        """The value at its end, or the error on the way."""

    @abstractmethod
    def extend(self, qualifier: Qualifier) -> None:
        """Add a qualifier at the end."""


def _qualified(scope: Activation, value: Value, qualifiers: Sequence[Qualifier]) -> Value:
    """Follow the hops; from the first optional one on, what is missing gives none instead of an error."""
    optional = value.__class__ is Optional
    if optional:
        if not value.present:
            return value
        value = value.value
    for qualifier in qualifiers:
        optional = optional or qualifier.optional
        value, present = qualifier.apply(scope, value, if_present=optional)
        if value.__class__ is EvalError:
            return value
        if not present:
            return NONE
    return Optional(value) if optional else value


@dataclass(slots=True)
class VariablePath(ValuePath):
    ident: int
    name: str
    qualifiers: list[Qualifier] = field(default_factory=list)

    @property
    def id(self) -> int:
        return self.qualifiers[-1].id if self.qualifiers else self.ident

    def resolve(self, scope: Activation) -> Value:
        value = scope.lookup(self.name)
        if value.__class__ is EvalError or not self.qualifiers:
            return value
        return _qualified(scope, value, self.qualifiers)

    def extend(self, qualifier: Qualifier) -> None:
        self.qualifiers.append(qualifier)


@dataclass(slots=True)
class Computed(ValuePath):
    """A path that starts at the result of another step."""

    ident: int
    operand: Step
    qualifiers: list[Qualifier] = field(default_factory=list)

    @property
    def id(self) -> int:
        return self.qualifiers[-1].id if self.qualifiers else self.ident

    def resolve(self, scope: Activation) -> Value:
        value = self.operand.value(scope)
        if value.__class__ is EvalError or not self.qualifiers:
            return value
        return _qualified(scope, value, self.qualifiers)

    def extend(self, qualifier: Qualifier) -> None:
        self.qualifiers.append(qualifier)


@dataclass(slots=True)
class Choice(ValuePath):
    """`c ? a : b`; hops behind it belong to both branches."""

    ident: int
    condition: Step
    then: ValuePath
    other: ValuePath

    @property
    def id(self) -> int:
        return self.then.id if self.then.id == self.other.id else self.ident

    def resolve(self, scope: Activation) -> Value:
        value = self.condition.value(scope)
        if value is True:
            return self.then.resolve(scope)
        if value is False:
            return self.other.resolve(scope)
        return value if value.__class__ is EvalError else no_such_overload()

    def extend(self, qualifier: Qualifier) -> None:
        self.then.extend(qualifier)
        self.other.extend(qualifier)


class PathStep(Step):
    """A path as a step; a presence test costs no look of its own."""

    def __init__(self, path: ValuePath, *, test: int | None = None) -> None:
        self.path = path
        self._test = test

    @property
    def id(self) -> int:  # type: ignore[override]
        return self.path.id if self._test is None else self._test

    def value(self, scope: Activation) -> Value:
        result = self.path.resolve(scope)
        if self._test is not None and result.__class__ is Optional:
            result = result.present
        meter = scope.meter
        # A choice costs nothing by itself; the branch that was taken has been charged.
        if isinstance(self.path, Choice):
            meter.drop(self.path.other.id, self.path.then.id, self.path.condition.id)
        else:
            meter.drop(self.path.id)
            meter.cost += 1
        if self._test is not None:
            meter.cost -= 1
        meter.pushed(self.id, result)
        return result


# --- folds


class FoldActivation(Activation):
    """The variables of a loop.

    The accumulator is computed when it is first read. The iteration variables are gone when the result is computed.
    """

    def __init__(self, fold: Fold, outer: Activation) -> None:
        self.meter = outer.meter
        self._fold = fold
        self._outer = outer
        self._accumulated: Value = None
        self._started = False
        self.first: Value = None
        self.second: Value = None
        self.finished = False

    def accumulate(self, value: Value) -> None:
        self._accumulated = value
        self._started = True

    def _initial(self) -> Value:
        """The accumulator to start with; one that is going to grow grows in place."""
        value = self._fold.init.value(self._outer)
        if self._fold.grows and value == ():
            return GrowingList()
        return GrowingMap() if self._fold.grows and value == {} else value

    def lookup(self, name: str) -> Value:
        if name == self._fold.accumulator:
            # Lazily, as upstream: an accumulator that nobody reads is not charged.
            if not self._started:
                self.accumulate(self._initial())
            return self._accumulated
        if not self.finished:
            if name == self._fold.variable:
                return self.first
            if self._fold.variable2 and name == self._fold.variable2:
                return self.second
        return self._outer.lookup(name)


@dataclass(slots=True)
class Fold(Step):
    id: int
    range: Step
    variable: str
    variable2: str
    accumulator: str
    init: Step
    condition: Step
    step: Step
    result: Step
    grows: bool

    def value(self, scope: Activation) -> Value:
        result = self._folded(scope)
        scope.meter.drop(self.range.id)
        scope.meter.pushed(self.id, result)
        return result

    def _folded(self, scope: Activation) -> Value:
        over = self.range.value(scope)
        if over.__class__ is EvalError:
            return over
        pairs = iterated(over, two=bool(self.variable2))
        if isinstance(pairs, EvalError):
            return pairs
        inner = FoldActivation(self, scope)
        for inner.first, inner.second in pairs:
            if self.condition.value(inner) is False:
                break
            inner.accumulate(self.step.value(inner))
        inner.finished = True
        result = self.result.value(inner)
        if result.__class__ is GrowingList:
            return tuple(result)
        return dict(result) if result.__class__ is GrowingMap else result


def iterated(over: Value, *, two: bool) -> Sequence[tuple[Value, Value]] | EvalError:
    """Pairs of key and value for two variables; element or key, and nothing, for one."""
    if over.__class__ is tuple:
        return list(enumerate(over)) if two else [(value, None) for value in over]
    if isinstance(over, dict):
        return list(zip(keys(over), over.values(), strict=True)) if two else [(key, None) for key in keys(over)]
    if two:
        return EvalError(f"unsupported comprehension range type: {type_name(over)}")
    return EvalError(f"got '{type_name(over)}', expected iterable type")
