"""DeviceTaintRule: the rules for taints that administrators put on devices."""

from __future__ import annotations

from collections.abc import Iterator

from drakit.api import DeviceTaintRule, DeviceTaintSelector
from drakit.base.fields import FieldError, Path, too_many
from drakit.validation.context import Context
from drakit.validation.fields.conditions import check_conditions
from drakit.validation.fields.metadata import check_metadata, check_metadata_update
from drakit.validation.fields.names import check_class, check_driver, check_label, check_pool
from drakit.validation.resource.expressions import check_selectors
from drakit.validation.resource.taints import check_taint

CONDITIONS = 8
_SELECTOR = Path("spec.deviceSelector")
_TAINT = Path("spec.taint")


def check_taint_rule(rule: DeviceTaintRule, ctx: Context) -> Iterator[FieldError]:
    yield from check_metadata(rule.metadata, namespaced=False)
    yield from _check_selector(rule.spec.device_selector, None, ctx)
    yield from check_taint(rule.spec.taint, _TAINT)


def check_taint_rule_update(new: DeviceTaintRule, old: DeviceTaintRule, ctx: Context) -> Iterator[FieldError]:
    yield from check_metadata_update(new.metadata, old.metadata)
    yield from _check_selector(new.spec.device_selector, old.spec.device_selector, ctx)
    yield from check_taint(new.spec.taint, _TAINT, old=old.spec.taint)


def check_taint_rule_status_update(new: DeviceTaintRule, old: DeviceTaintRule, _ctx: Context) -> Iterator[FieldError]:
    yield from check_metadata_update(new.metadata, old.metadata)
    path = Path("status.conditions")
    yield from check_conditions(new.status.conditions, path)
    if len(new.status.conditions) > CONDITIONS:
        yield too_many(path, len(new.status.conditions), CONDITIONS)


def _check_selector(
    selector: DeviceTaintSelector | None, old: DeviceTaintSelector | None, ctx: Context
) -> Iterator[FieldError]:
    """A criterion that is there must be a good one: an empty name would select nothing."""
    if selector is None:
        return
    if selector.device_class_name is not None:
        yield from check_class(selector.device_class_name, _SELECTOR / "deviceClassName")
    if selector.driver is not None:
        yield from check_driver(selector.driver, _SELECTOR / "driver")
    if selector.pool is not None:
        yield from check_pool(selector.pool, _SELECTOR / "pool")
    if selector.device is not None:
        yield from check_label(selector.device, _SELECTOR / "device")
    stored = old is not None and old.selectors == selector.selectors
    yield from check_selectors(selector.selectors, _SELECTOR / "selectors", ctx, stored=stored)
