"""CEL selectors of claims, classes and taint rules: length, syntax, types, cost.

In:  selectors that were set or changed. What is stored was checked when it came and is not checked again: a later
     version may know fewer functions.
Out: errors with the text of the compiler.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from drakit.api import DeviceSelector
from drakit.base import names
from drakit.base.errors import SelectorInvalid
from drakit.base.fields import FieldError, Path, forbidden, invalid, required, too_long
from drakit.selectors import compile_selector
from drakit.validation.context import Context
from drakit.validation.sequences import each

SELECTORS = 32
EXPRESSION_LENGTH = 10 * 1024
EXPRESSION_COST = 1_000_000


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
    try:
        selector = compile_selector(
            text,
            list_attributes=ctx.gates.enabled("DRAListTypeAttributes"),
            consumable_capacity=ctx.gates.enabled("DRAConsumableCapacity"),
        )
    except SelectorInvalid as error:
        yield invalid(path, text, str(error))
        return
    if selector.max_cost > EXPRESSION_COST:
        yield forbidden(path, "too complex, exceeds cost limit")
