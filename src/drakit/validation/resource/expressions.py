"""CEL selectors of claims, classes and taint rules: length, syntax, types, cost.

In:  selectors that were set or changed. What is stored was checked when it came and is not checked again: a later
     version may know fewer functions.
Out: errors with the text of the compiler.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import msgspec

from drakit.api import DeviceSelector
from drakit.base import names
from drakit.base.errors import SelectorInvalid
from drakit.base.fields import FieldError, Path, forbidden, invalid, required, too_long
from drakit.base.gates import FeatureGates
from drakit.selectors import Selector
from drakit.validation.context import Context
from drakit.validation.fields.sequences import each

SELECTORS = 32
EXPRESSION_LENGTH = 10 * 1024
EXPRESSION_COST = 1_000_000
CACHED_RESULTS = 32 * 8 * SELECTORS
"""As many as one claim can have: requests, alternatives, selectors."""


def check_selectors(
    selectors: Sequence[DeviceSelector], path: Path, ctx: Context, *, stored: bool = False
) -> Iterator[FieldError]:
    def check(selector: DeviceSelector, where: Path) -> Iterator[FieldError]:
        if selector.cel is None:
            yield required(where / "cel")
        elif not stored:
            yield from check_expression(selector.cel.expression, where / "cel" / "expression", ctx)

    yield from each(selectors, path, check, limit=SELECTORS)


def check_expression(text: str, path: Path, ctx: Context) -> Iterator[FieldError]:
    """A text that is too long is not compiled."""
    if names.size(text) > EXPRESSION_LENGTH:
        yield too_long(path, EXPRESSION_LENGTH)
        return
    result = judge_expression(text, ctx.gates)
    if result.fault:
        yield invalid(path, text, result.fault)
    elif result.too_costly:
        yield forbidden(path, "too complex, exceeds cost limit")


class CompileResult(msgspec.Struct, frozen=True):
    """What the compiler says about an expression. Both fields are empty if it is valid."""

    fault: str = ""
    too_costly: bool = False


def judge_expression(text: str, gates: FeatureGates) -> CompileResult:
    """Compile an expression, or remember what came of it. From any thread."""
    return _judge(text, gates.enabled("DRAListTypeAttributes"), gates.enabled("DRAConsumableCapacity"))


@lru_cache(maxsize=CACHED_RESULTS)
def _judge(text: str, list_attributes: bool, consumable_capacity: bool) -> CompileResult:
    """Only the result is cached, not the program: that can be a hundred times as large as its text."""
    try:
        selector = Selector(text, list_attributes=list_attributes, consumable_capacity=consumable_capacity)
    except SelectorInvalid as error:
        return CompileResult(fault=str(error))
    return CompileResult(too_costly=selector.max_cost > EXPRESSION_COST)
