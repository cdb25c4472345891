"""Selector expressions: compiled once per text, evaluated on bound devices.

In:  the text of a selector and the gates.
Out: a Selector. `evaluate` never raises: an error on a device is part of its SelectorOutcome.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
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
    TraceLine,
    Value,
    as_eval_error,
    compile_program,
    trace,
    type_name,
)
from drakit.selectors.devices import BoundDevice
from drakit.selectors.environment import COST_LIMIT, MAX_LENGTH, Gates, environment, size_of
from drakit.selectors.hints import explained


class SelectorOutcome(NamedTuple):
    """Match, no match, or an error with its text; `cost` only where it was counted."""

    matches: bool
    error: str = ""
    cost: int | None = None


_ERROR = "error: "
MATCH, NO_MATCH = SelectorOutcome(True), SelectorOutcome(False)


class Selector:
    """A compiled expression. `max_cost` is its worst case, which validation holds against the limit."""

    __slots__ = ("evaluate", "gates", "max_cost", "program", "text")

    evaluate: Callable[[BoundDevice], SelectorOutcome]

    def __init__(self, text: str, *, list_attributes: bool = False, consumable_capacity: bool = True) -> None:
        """Raise SelectorInvalid with every fault of the text."""
        self.text = text
        self.gates = Gates(list_attributes, consumable_capacity)
        self.program = _compiled(text, self.gates)
        self.max_cost = self.program.max_cost
        # Counting every step is slower, and is needed only if some device could make the expression exceed its budget.
        self.evaluate = self._function() or self.metered

    def _function(self) -> Callable[[BoundDevice], SelectorOutcome] | None:
        """The generated function, if no device can make the expression exceed the cost limit; else None."""
        if not self.program.within(COST_LIMIT):
            return None
        attribute = "device" if self.gates.list_attributes else "scalar_device"
        return self.program.function({"device": attribute}, Results(MATCH, NO_MATCH, _no_answer, self._failed))

    def _failed(self, error: Exception, bound: BoundDevice) -> SelectorOutcome:
        """The outcome of an error in generated code. If it is a limit of Python, the counted steps give the answer."""
        known = as_eval_error(error)
        return self.metered(bound) if known is None else SelectorOutcome(False, explained(known.message, bound))

    def metered(self, bound: BoundDevice) -> SelectorOutcome:
        """Evaluate with every step counted and the limit held."""
        try:
            variables = {"device": bound.device if self.gates.list_attributes else bound.scalar_device}
            value, cost = self.program.metered(variables, limit=COST_LIMIT)
        except EvalError as error:
            return SelectorOutcome(False, error.message)
        except BudgetExceeded as error:
            return SelectorOutcome(False, str(error))
        if value.__class__ is bool:
            return SelectorOutcome(value, "", cost)
        return SelectorOutcome(False, explained(refused(value), bound), cost)

    def trace(self, bound: BoundDevice) -> tuple[TraceLine, ...]:
        """Every part of the expression with its place and its value on one device."""
        try:
            device = bound.device if self.gates.list_attributes else bound.scalar_device
        except EvalError as error:
            return (TraceLine(1, 1, 0, self.text, f"error: {error.message}", 1),)
        return _hinted(trace(self.program, {"device": device}, limit=COST_LIMIT), bound)

    def __repr__(self) -> str:
        return f"Selector({self.text!r})"


def _no_answer(value: Value) -> SelectorOutcome:
    return SelectorOutcome(False, refused(value))


def _hinted(lines: tuple[TraceLine, ...], bound: BoundDevice) -> tuple[TraceLine, ...]:
    """Explain each error once, where it comes from: the innermost part that has it."""
    origins = {line.value: index for index, line in enumerate(lines) if line.value.startswith(_ERROR)}
    hinted = list(lines)
    for value, index in origins.items():
        message = explained(value.removeprefix(_ERROR), bound)
        hinted[index] = replace(lines[index], value=_ERROR + message)
    return tuple(hinted)


def refused(value: Value) -> str:
    """The message for a result that is not a bool."""
    if isinstance(value, EvalError):
        return value.message
    name = type_name(value)
    return (
        f"CEL result of type {name} could not be converted to bool: unsupported type conversion from '{name}' to bool"
    )


def _compiled(text: str, gates: Gates) -> Program:
    try:
        program = compile_program(text, environment(gates), size_of=size_of, max_length=MAX_LENGTH)
    except CompileError as error:
        raise SelectorInvalid(f"compilation failed: {error}") from error
    found = program.result_type
    # Upstream accepts a result of unknown type: whether it is a bool shows on each device.
    if found not in {BOOL, ANY} and not (gates.list_attributes and found == DYN):
        raise SelectorInvalid(f"must evaluate to bool or the unknown type, not {found.full_name}")
    return program


@lru_cache(maxsize=1024)
def compile_selector(text: str, *, list_attributes: bool = False, consumable_capacity: bool = True) -> Selector:
    """The Selector of a text, from the cache when it was compiled before."""
    return Selector(text, list_attributes=list_attributes, consumable_capacity=consumable_capacity)
