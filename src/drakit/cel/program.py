"""Compile an expression, and run it: fast, or with every step counted.

In:  text and an Environment.
Out: a Program that holds the plan, the worst case cost and the types; CompileError otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from drakit.cel.checking.checker import Checked, check
from drakit.cel.checking.declarations import Environment
from drakit.cel.checking.types import Type
from drakit.cel.cost.estimate import SizeOf, estimate
from drakit.cel.cost.meter import Meter, Observer
from drakit.cel.errors import CompileError, EvalError
from drakit.cel.evaluation.plan import ConstantFault, evaluate, plan
from drakit.cel.evaluation.steps import Step
from drakit.cel.generation.functions import Results, generate
from drakit.cel.library.validators import validate
from drakit.cel.stack import with_room
from drakit.cel.syntax.parser import MAX_LENGTH, parse
from drakit.cel.syntax.source import Source
from drakit.cel.values import Value

TOO_DEEP = "expression is nested too deeply"


class Metered(NamedTuple):
    """A value, or the error in its place, and what it cost to get it."""

    value: Value
    cost: int


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled expression.

    `max_cost` bounds the cost of any evaluation, as far as sizes are known.
    """

    source: Source
    checked: Checked
    max_cost: int
    _size_of: SizeOf = field(repr=False)
    _step: Step = field(repr=False)

    @property
    def result_type(self) -> Type:
        return self.checked.result_type

    def within(self, limit: int) -> bool:
        """Whether no evaluation can cost more than the limit.

        It follows sizes through optionals. `max_cost` does not, because it has to agree with upstream.
        """
        if self.max_cost <= limit:
            return True
        return with_room(lambda: estimate(self.checked, self._size_of, through_optionals=True)) <= limit

    def function(self, attributes: Mapping[str, str], results: Results) -> Callable[[Any], Any] | None:
        """Python for the expression: a function of one object whose `attributes` hold the variables.

        Nothing is counted, so it is for expressions that stay `within` the limit. None when Python cannot take it.
        """
        return with_room(lambda: generate(self.checked, attributes, results))

    def metered(
        self, variables: dict[str, Value], *, limit: int | None = None, observer: Observer | None = None
    ) -> Metered:
        """Evaluate with every step counted; BudgetExceeded when that costs more than `limit`.

        `observer` gets the id and the value of each part. The caller then provides room on the stack itself, by
        `with_room`: a second run in here would show the observer every part twice.
        """
        if observer is not None:
            return self._counted(variables, limit, observer)
        try:
            return with_room(lambda: self._counted(variables, limit, None))
        # On its own stack it was too deep as well: the answer is an error of the expression, not of the process.
        except RecursionError:
            return Metered(EvalError(TOO_DEEP), 0)

    def _counted(self, variables: dict[str, Value], limit: int | None, observer: Observer | None) -> Metered:
        meter = Meter(limit, observer)
        value = evaluate(self._step, variables, meter)
        return Metered(value, meter.cost)


def compile_program(
    text: str, environment: Environment, *, size_of: SizeOf | None = None, max_length: int = MAX_LENGTH
) -> Program:
    """Read, check, estimate and plan an expression."""
    source, sizes = Source(text), size_of or (lambda _: None)
    try:
        return with_room(lambda: _compiled(source, environment, sizes, max_length))
    except ConstantFault as fault:
        raise CompileError([source.issue(fault.offset, f"program instantiation failed: {fault}")]) from None
    except RecursionError:
        raise CompileError([source.unplaced(TOO_DEEP)]) from None


def _compiled(source: Source, environment: Environment, sizes: SizeOf, max_length: int) -> Program:
    checked = check(parse(source, environment.macros, max_length=max_length), source, environment)
    validate(checked, source)
    return Program(source, checked, estimate(checked, sizes), sizes, plan(checked))
