"""What rows of many kinds have in common: name and age, labels, selectors, the containers of a template."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from drakit.api.objects.plain import Plain, from_plain
from drakit.apiserver.tables.ages import age
from drakit.base.errors import DrakitError
from drakit.base.labels import LabelSelector, from_struct

Cells = Callable[[Plain, datetime], list[Any]]
NONE = "<none>"
UNSET = "<unset>"


def named(between: Callable[[Plain, datetime], list[Any]], *, wide: Cells | None = None) -> Cells:
    """Name, the cells of the kind, age; then what only wide output shows."""

    def cells(item: Plain, now: datetime) -> list[Any]:
        metadata = item.get("metadata") or {}
        rest = wide(item, now) if wide else []
        return [metadata.get("name", ""), *between(item, now), age(metadata.get("creationTimestamp"), now), *rest]

    return cells


def spec_of(item: Plain) -> Plain:
    found: Plain = item.get("spec") or {}
    return found


def status_of(item: Plain) -> Plain:
    found: Plain = item.get("status") or {}
    return found


def labels_text(labels: Plain | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def selector_text(selector: Plain | None, *, nothing: str = NONE) -> str:
    try:
        return str(from_struct(from_plain(LabelSelector, selector or {}))) or nothing
    except DrakitError:
        return "<error>"


def template_cells(item: Plain, _now: datetime) -> list[Any]:
    spec = spec_of(item)
    return [*container_cells(spec.get("template")), selector_text(spec.get("selector"))]


def container_cells(template: Plain | None) -> list[Any]:
    """The names and the images of a template's containers."""
    containers = ((template or {}).get("spec") or {}).get("containers") or ()
    return [",".join(each.get(part, "") for each in containers) for part in ("name", "image")]
