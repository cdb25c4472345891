"""Matching: which shapes the selectors of a class and a request accept.

In:  selector expressions in order, class first.
Out: a verdict per shape: it matches, selector number i says no, or selector number i fails. Each is found out once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from drakit.allocator.inventory.shapes import Shape
from drakit.base.errors import SelectorInvalid
from drakit.selectors import Gates, Selector, compile_selector


@dataclass(frozen=True, slots=True)
class Verdict:
    """`refused_by` is the position of the selector that did not say yes; `error` is set when it could not say."""

    matches: bool
    refused_by: int = -1
    error: str = ""
    fails: bool = False


MATCH = Verdict(True)


class Selection:
    """The selectors of one class and one request, tried in order until one does not match."""

    __slots__ = ("class_count", "gates", "key", "texts")

    def __init__(self, class_texts: tuple[str, ...], texts: tuple[str, ...], *, gates: Gates) -> None:
        self.texts = class_texts + texts
        self.class_count = len(class_texts)
        # One text, because a text remembers its hash.
        self.key = "\n\0".join((str(gates), *self.texts))
        self.gates = gates

    @staticmethod
    def of(class_texts: Sequence[str], texts: Sequence[str], *, gates: Gates) -> Selection:
        return Selection(tuple(class_texts), tuple(texts), gates=gates)

    def verdict(self, shape: Shape) -> Verdict:
        found = shape.verdicts.get(self.key)
        if found is None:
            found = self._judge(shape)
            shape.remember(self.key, found)
        return found

    def _judge(self, shape: Shape) -> Verdict:
        for number, text in enumerate(self.texts):
            found = judge(text, shape, gates=self.gates)
            if not found.matches:
                return Verdict(False, number, found.error, bool(found.error))
        return MATCH

    def origin(self, number: int) -> tuple[str, int]:
        """Whether selector `number` is the class's or the request's, and which one of those it is."""
        if number < self.class_count:
            return "class", number
        return "request", number - self.class_count


def judge(text: str, shape: Shape, *, gates: Gates) -> Verdict:
    """One expression on one shape. An expression that does not compile fails on every device, and only there."""
    compiled = _compiled(text, gates=gates)
    if isinstance(compiled, str):
        return Verdict(False, 0, compiled)
    outcome = compiled.evaluate(shape.bound)
    if outcome.error:
        return Verdict(False, 0, f"CEL runtime error: {outcome.error}")
    return MATCH if outcome.matches else Verdict(False, 0)


@lru_cache(maxsize=4096)
def _compiled(text: str, *, gates: Gates) -> Selector | str:
    try:
        return compile_selector(
            text, list_attributes=gates.list_attributes, consumable_capacity=gates.consumable_capacity
        )
    except SelectorInvalid as error:
        return f"CEL compile error: {error}"
