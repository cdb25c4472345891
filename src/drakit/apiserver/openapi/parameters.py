"""The query parameters of the API's operations, and what they do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Parameter = Mapping[str, Any]

_TEXTS: Mapping[str, tuple[str, str]] = {
    "allowWatchBookmarks": ("boolean", "A watch may send bookmarks: events that only say how far it has come."),
    "continue": ("string", "Where to go on with a list that came in parts: the value from the part before."),
    "dryRun": ("string", "All: do everything but keep the result."),
    "fieldManager": ("string", "Who makes the change, for the ownership of fields; at most 128 printable characters."),
    "fieldSelector": ("string", "Only objects with these values of fields."),
    "fieldValidation": (
        "string",
        "What to do about unknown and duplicate fields: Strict refuses, Warn (the default) warns, Ignore drops them.",
    ),
    "force": ("boolean", "Take fields over that others own. Only for apply patches."),
    "gracePeriodSeconds": ("integer", "How long the object may take to end; zero means at once."),
    "labelSelector": ("string", "Only objects with these labels."),
    "limit": ("integer", "How many objects to return at most; the rest can be had with continue."),
    "orphanDependents": ("boolean", "Deprecated: use propagationPolicy. Whether dependents stay."),
    "pretty": ("string", "true: indent the output."),
    "propagationPolicy": ("string", "What becomes of dependents: Orphan, Background or Foreground."),
    "resourceVersion": ("string", "The state to read, or to begin a watch from."),
    "resourceVersionMatch": ("string", "How resourceVersion is meant in a list: Exact or NotOlderThan."),
    "sendInitialEvents": ("boolean", "A watch begins with all objects that there are, and then a bookmark."),
    "timeoutSeconds": ("integer", "How long a list or watch may take."),
    "watch": ("boolean", "Stream changes instead of returning a list."),
}

LIST = (
    "allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion",
    "resourceVersionMatch", "sendInitialEvents", "timeoutSeconds", "watch",
)  # fmt: skip
WRITE = ("dryRun", "fieldManager", "fieldValidation")
PATCH = (*WRITE, "force")
DELETE = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
DELETE_COLLECTION = tuple(sorted({*DELETE, *LIST} - {"allowWatchBookmarks", "watch"}))


def query(names: tuple[str, ...]) -> list[Parameter]:
    """Parameters of the query string."""
    return [
        {"name": name, "in": "query", "description": text, "schema": {"type": type_, "uniqueItems": True}}
        for name, (type_, text) in ((name, _TEXTS[name]) for name in names)
    ]


def path(name: str, description: str) -> Parameter:
    """A part of the path."""
    schema = {"type": "string", "uniqueItems": True}
    return {"name": name, "in": "path", "description": description, "required": True, "schema": schema}
