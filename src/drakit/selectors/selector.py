"""Selector expressions: compiled once per text, evaluated on bound devices.

In:  the text of a selector and the gates.
Out: a Selector. Whatever a device does to it, `evaluate` answers with an Outcome and never raises.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from drakit.base.errors import SelectorInvalid
from drakit.cel import (
    ANY,
    BOOL,
    DYN,
    BudgetExceeded,
    CompileError,
    EvalError,
    Program,
    Results,
    Value,
    as_eval_error,
    compile_program,
    type_name,
)
from drakit.selectors.devices import BoundDevice
from drakit.selectors.environment import COST_LIMIT, MAX_LENGTH, Gates, environment, size_of


class Outcome(NamedTuple):
    """Match, no match, or an error with its text; `cost` only where it was counted."""

    matches: bool
    error: str = ""
    cost: int | None = None


MATCH, NO_MATCH = Outcome(True), Outcome(False)


class Selector:
    """A compiled expression. `max_cost` is its worst case, which validation holds against the limit."""

    __slots__ = ("evaluate", "gates", "max_cost", "program", "text")

    evaluate: Callable[[BoundDevice], Outcome]

    def __init__(self, text: str, *, list_attributes: bool = False, consumable_capacity: bool = True) -> None:
        """Raise SelectorInvalid with every fault of the text."""
        self.text = text
        self.gates = Gates(list_attributes, consumable_capacity)
        self.program = _compiled(text, self.gates)
        self.max_cost = self.program.max_cost
        self.evaluate = self._function() or self.metered

    def _function(self) -> Callable[[BoundDevice], Outcome] | None:
        """The fast way, when no device can make the expression cost more than it may."""
        if self.program.bound > COST_LIMIT:
            return None
        attribute = "device" if self.gates.list_attributes else "scalar_device"
        return self.program.function({"device": attribute}, _RESULTS)

    def metered(self, bound: BoundDevice) -> Outcome:
        """Evaluate with every step counted and the limit held."""
        try:
            variables = {"device": bound.device if self.gates.list_attributes else bound.scalar_device}
            value, cost = self.program.metered(variables, limit=COST_LIMIT)
        except EvalError as error:
            return Outcome(False, error.message)
        except BudgetExceeded as error:
            return Outcome(False, str(error))
        if value.__class__ is bool:
            return Outcome(value, "", cost)
        return Outcome(False, refused(value), cost)

    def __repr__(self) -> str:
        return f"Selector({self.text!r})"


def _failed(error: Exception) -> Outcome:
    return Outcome(False, as_eval_error(error).message)


def _no_answer(value: Value) -> Outcome:
    return Outcome(False, refused(value))


def refused(value: Value) -> str:
    """Why a result is no answer."""
    if isinstance(value, EvalError):
        return value.message
    name = type_name(value)
    return (
        f"CEL result of type {name} could not be converted to bool: unsupported type conversion from '{name}' to bool"
    )


_RESULTS = Results(MATCH, NO_MATCH, _no_answer, _failed)


def _compiled(text: str, gates: Gates) -> Program:
    try:
        program = compile_program(text, environment(gates), size_of=size_of, max_length=MAX_LENGTH)
    except CompileError as error:
        raise SelectorInvalid(f"compilation failed: {error}") from error
    found = program.result_type
    if found not in {BOOL, ANY} and not (gates.list_attributes and found == DYN):
        raise SelectorInvalid(f"must evaluate to bool or the unknown type, not {found}")
    return program


@lru_cache(maxsize=4096)
def compile_selector(text: str, *, list_attributes: bool = False, consumable_capacity: bool = True) -> Selector:
    """The Selector of a text, from the cache when it was compiled before."""
    return Selector(text, list_attributes=list_attributes, consumable_capacity=consumable_capacity)
