"""Binding conditions, of devices that a node must be made ready for and of their allocations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from drakit.base.fields import FieldError, Path, duplicate, invalid
from drakit.validation.context import Context
from drakit.validation.fields.names import check_label_key
from drakit.validation.fields.sequences import each, repeated

CONDITIONS = 4


def check_binding_conditions(
    ready: Sequence[str], failed: Sequence[str], path: Path, ctx: Context
) -> Iterator[FieldError]:
    """Both lists or none, each name once in either."""
    if not ready and not failed:
        return
    ready_path, failed_path = path / "bindingConditions", path / "bindingFailureConditions"
    yield from each(ready, ready_path, check_label_key, limit=CONDITIONS)
    yield from each(failed, failed_path, check_label_key, limit=CONDITIONS)
    yield from repeated(ready, ready_path, str)
    seen: set[str] = set()
    for index, name in enumerate(failed):
        if name in seen:
            yield duplicate(failed_path[index], name)
        seen.add(name)
        if name in ready:
            yield invalid(failed_path[index], name, "bindingFailureConditions must not overlap with bindingConditions")
    if not ready:
        detail = "bindingConditions are required to use bindingFailureConditions"
        yield invalid(ready_path, _nothing(ready_path, ctx), detail)
    if not failed:
        detail = "bindingFailureConditions are required to use bindingConditions"
        yield invalid(failed_path, _nothing(failed_path, ctx), detail)


def _nothing(path: Path, ctx: Context) -> list[str] | None:
    """An empty list when that is what was sent."""
    return [] if str(path) in ctx.empty_lists else None
