"""Lists and objects as Tables.

In:  objects in any served version, as plain data.
Out: a `meta.k8s.io` Table: columns, and a row per object, with the object or its metadata if the client wants that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Any

from drakit.api.objects.plain import Plain
from drakit.apiserver.failures import bad_request
from drakit.apiserver.tables.cells import CELLS, created_cells
from drakit.apiserver.tables.podcells import pod_conditions

METADATA = "Metadata"
OBJECT = "Object"
NONE = "None"
GROUP = "meta.k8s.io"


def check_include_object(value: str) -> str:
    """Check the `includeObject` parameter; empty means Metadata. Raise ApiError 400 for other values."""
    if value not in ("", METADATA, OBJECT, NONE):
        raise bad_request(
            f'Unable to convert to Table as requested: includeObject: Invalid value: "{value}": '
            "must be 'Metadata', 'Object', 'None', or empty"
        )
    return value or METADATA


def render(
    kind: str,
    objects: Iterable[Plain],
    *,
    now: datetime,
    include_object: str = METADATA,
    metadata: Mapping[str, Any] | None = None,
    version: str = "v1",
    headers: bool = True,
) -> dict[str, Any]:
    """The table of objects of one kind. `metadata` is the list's, or for a single object its resourceVersion."""
    table: dict[str, Any] = {"kind": "Table", "apiVersion": f"{GROUP}/{version}", "metadata": dict(metadata or {})}
    table["columnDefinitions"] = list(columns(kind)) if headers else None
    table["rows"] = [_row(kind, each, now, include_object, version) for each in objects]
    return table


def _row(kind: str, item: Plain, now: datetime, include_object: str, version: str) -> dict[str, Any]:
    row: dict[str, Any] = {"cells": CELLS.get(kind, created_cells)(item, now)}
    if kind == "Pod" and (conditions := pod_conditions(item)):
        row["conditions"] = conditions
    row["object"] = _included(item, include_object, version)
    return row


def _included(item: Plain, include_object: str, version: str) -> Plain | None:
    if include_object == OBJECT:
        return item
    return None if include_object == NONE else partial_metadata(item, version)


def partial_metadata(item: Plain, version: str = "v1") -> dict[str, Any]:
    """What is the same in all kinds."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"{GROUP}/{version}",
        "metadata": item.get("metadata") or {},
    }


@cache
def columns(kind: str) -> tuple[Mapping[str, Any], ...]:
    """The columns of a kind. Nobody changes them."""
    declared = _declared()
    shared = declared["shared"]
    wanted = declared["kinds"].get(kind, ["name", "created"])
    return tuple(_column(*(shared[each] if isinstance(each, str) else each)) for each in wanted)


def _column(name: str, type_: str, description: str, priority: int = 0, format_: str = "") -> Mapping[str, Any]:
    return {"name": name, "type": type_, "format": format_, "description": description, "priority": priority}


@cache
def _declared() -> Mapping[str, Any]:
    text = resources.files(__package__).joinpath("columns.json").read_text(encoding="utf-8")
    declared: Mapping[str, Any] = json.loads(text)
    return declared
