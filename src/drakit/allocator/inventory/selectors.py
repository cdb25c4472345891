"""Selectors: which shapes the selectors of a class and a request match.

In:  selector expressions in order, class first.
Out: a ShapeMatch per shape: it matches, selector number i is false, or selector number i fails. Each is found out
     once per shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from drakit.allocator.inventory.deadlines import check_time
from drakit.allocator.inventory.shapes import DeviceShape, ShapeMatch
from drakit.api import DeviceClass
from drakit.base.errors import SelectorInvalid
from drakit.base.gates import FeatureGates
from drakit.selectors import Gates, Selector, compile_selector

MATCH = ShapeMatch(True)


class DeviceSelectors:
    """The selectors of one class and one request, tried in order until one does not match."""

    __slots__ = ("class_count", "gates", "key", "texts")

    def __init__(self, class_texts: Sequence[str], texts: Sequence[str], *, gates: Gates) -> None:
        self.texts = (*class_texts, *texts)
        self.class_count = len(class_texts)
        # One string, because Python caches the hash of a string: the key is looked up once per device list and plan.
        self.key = "\n\0".join((str(gates), *self.texts))
        self.gates = gates

    @staticmethod
    def of_class(device_class: DeviceClass, gates: FeatureGates) -> DeviceSelectors:
        """The selectors of a class alone."""
        return DeviceSelectors(class_expressions(device_class), (), gates=selector_gates(gates))

    def check(self, shape: DeviceShape) -> ShapeMatch:
        found = shape.known_result(self.key)
        if found is None:
            found = self._evaluate(shape)
            shape.remember(self.key, found)
        return found

    def _evaluate(self, shape: DeviceShape) -> ShapeMatch:
        for number, text in enumerate(self.texts):
            check_time()
            found = evaluate(text, shape, gates=self.gates)
            if not found.matches:
                return ShapeMatch(False, number, found.error, bool(found.error))
        return MATCH

    def origin(self, number: int) -> tuple[str, int]:
        """Whether selector `number` is the class's or the request's, and which one of those it is."""
        if number < self.class_count:
            return "class", number
        return "request", number - self.class_count


def selector_gates(gates: FeatureGates) -> Gates:
    """The gates that change what an expression means."""
    return Gates(gates.enabled("DRAListTypeAttributes"), gates.enabled("DRAConsumableCapacity"))


def class_expressions(device_class: DeviceClass) -> list[str]:
    return [each.cel.expression for each in device_class.spec.selectors if each.cel]


def evaluate(text: str, shape: DeviceShape, *, gates: Gates) -> ShapeMatch:
    """Evaluate one expression on one shape. An expression that does not compile fails on each device, not before."""
    compiled = _compiled(text, gates=gates)
    if isinstance(compiled, str):
        return ShapeMatch(False, 0, compiled)
    outcome = compiled.evaluate(shape.bound)
    if outcome.error:
        return ShapeMatch(False, 0, f"CEL runtime error: {outcome.error}")
    return MATCH if outcome.matches else ShapeMatch(False, 0)


@lru_cache(maxsize=4096)
def _compiled(text: str, *, gates: Gates) -> Selector | str:
    try:
        return compile_selector(
            text, list_attributes=gates.list_attributes, consumable_capacity=gates.consumable_capacity
        )
    except SelectorInvalid as error:
        return f"CEL compile error: {error}"
