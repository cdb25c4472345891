"""Taints of devices and what tolerates them."""

from __future__ import annotations

from collections.abc import Iterator

from drakit.base.fields import FieldError, Path, invalid, not_supported, required
from drakit.base.taints import DEVICE_EFFECTS, EQUAL, EXISTS, DeviceTaint, DeviceToleration
from drakit.validation.fields.names import check_label_key, check_label_value

OPERATORS = (EQUAL, EXISTS)


def check_taint(taint: DeviceTaint, path: Path, *, old: DeviceTaint | None = None) -> Iterator[FieldError]:
    """An effect that the taint had before is left alone: older servers knew others."""
    yield from check_label_key(taint.key, path / "key")
    if taint.value:
        yield from check_label_value(taint.value, path / "value")
    if old is not None and old.effect == taint.effect:
        return
    if not taint.effect:
        yield required(path / "effect")
    elif taint.effect not in DEVICE_EFFECTS:
        yield not_supported(path / "effect", taint.effect, DEVICE_EFFECTS)


def check_toleration(toleration: DeviceToleration, path: Path) -> Iterator[FieldError]:
    if toleration.key:
        yield from check_label_key(toleration.key, path / "key")
    if not toleration.operator:
        yield required(path / "operator")
    elif toleration.operator == EXISTS:
        if toleration.value:
            yield invalid(path / "value", toleration.value, "must be empty for operator `Exists`")
    elif toleration.operator == EQUAL:
        yield from check_label_value(toleration.value, path / "value")
    else:
        yield not_supported(path / "operator", toleration.operator, OPERATORS)
    if toleration.effect and toleration.effect not in DEVICE_EFFECTS:
        yield not_supported(path / "effect", toleration.effect, DEVICE_EFFECTS)
