"""A plain write on the pure functions alone: what the server does to `managedFields`, without the server."""

from __future__ import annotations

from typing import Any

from drakit.apiserver.patching import FieldTracker
from drakit.apiserver.patching.entries import Owners, read_owners, write_owners

Document = dict[str, Any]


def update(tracker: FieldTracker, live: Document | None, new: Document, *, manager: str, now: str) -> Document:
    """The new object with its managedFields after a create (`live` is None), update or plain patch."""
    owners = tracker.owners_after(live, _owners_of(live), new, manager=manager, now=now)
    metadata = {name: value for name, value in new["metadata"].items() if name != "managedFields"}
    if owners:
        metadata["managedFields"] = write_owners(owners)
    return {**new, "metadata": metadata}


def _owners_of(live: Document | None) -> Owners:
    try:
        return read_owners(live["metadata"].get("managedFields"), stored=True) if live is not None else {}
    except ValueError:
        return {}


def without_times(document: Document) -> Document:
    entries = document["metadata"].get("managedFields") or []
    timeless = [{name: value for name, value in entry.items() if name != "time"} for entry in entries]
    return {**document, "metadata": {**document["metadata"], "managedFields": timeless}}
