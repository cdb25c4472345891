"""Taint rules: which DeviceTaintRules put their taint on which devices.

In:  the rules of administrators, the classes and selectors that they name.
Out: the taints of a device: its own, then those of the rules that select it, by name of the rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from drakit.allocator.inventory.selectors import DeviceSelectors, class_expressions
from drakit.allocator.inventory.shapes import DeviceShape
from drakit.api import Device, DeviceClass, DeviceTaint, DeviceTaintRule, ResourceSlice
from drakit.selectors import Gates


@dataclass(frozen=True, slots=True, eq=False)
class TaintRule:
    """A DeviceTaintRule with its class and selectors looked up. None as driver, pool or device means any."""

    driver: str | None
    pool: str | None
    device: str | None
    selectors: DeviceSelectors | None
    taint: DeviceTaint

    def may_concern(self, driver: str, pool: str) -> bool:
        return self.driver in (None, driver) and self.pool in (None, pool)

    def selects(self, driver: str, pool: str, device: Device, shape: DeviceShape) -> bool:
        """A selector that fails on a device does not select it: one odd device must not hide the taint of others."""
        if not self.may_concern(driver, pool) or self.device not in (None, device.name):
            return False
        return self.selectors is None or self.selectors.check(shape).matches


class TaintRules:
    """All rules at one point in time. Immutable."""

    def __init__(self, rules: Iterable[TaintRule] = ()) -> None:
        self.rules = tuple(rules)

    def taints_of(self, each: ResourceSlice, device: Device, shape: DeviceShape) -> tuple[DeviceTaint, ...]:
        if not self.rules:
            return device.taints
        driver, pool = each.spec.driver, each.spec.pool.name
        added = tuple(rule.taint for rule in self.rules if rule.selects(driver, pool, device, shape))
        return device.taints + added if added else device.taints


def read_rule(rule: DeviceTaintRule, classes: Mapping[str, DeviceClass], gates: Gates) -> TaintRule | None:
    """None when the rule selects nothing: it has no device selector, or names a class that is not there."""
    wanted = rule.spec.device_selector
    if wanted is None:
        return None
    texts = [each.cel.expression for each in wanted.selectors if each.cel]
    class_texts: list[str] = []
    if wanted.device_class_name is not None:
        named = classes.get(wanted.device_class_name)
        if named is None:
            return None
        class_texts = class_expressions(named)
    selectors = DeviceSelectors(class_texts, texts, gates=gates) if class_texts or texts else None
    return TaintRule(wanted.driver, wanted.pool, wanted.device, selectors, rule.spec.taint)
