"""A server with a dictionary for a store: enough to replay the recorded patches on the pure functions alone.

It decodes, defaults and tracks as the real one does, keeps status and spec apart, and neither validates nor admits:
cases whose outcome is a validation error are left to the HTTP replay.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from drakit.api.codec.documents import decode_plain, to_wire
from drakit.api.registry import find_plural
from drakit.api.versions.defaults import set_defaults
from drakit.apiserver.failures import ApiError
from drakit.apiserver.patching import (
    APPLY_PATCH,
    FieldTracker,
    PatchBody,
    apply_patch,
    atom_of,
    manager_name,
    read_applied,
)
from drakit.base.status import Status, not_found
from tests.apiserver.patching.tracked import update, without_times

Document = dict[str, Any]
NOW = datetime(2030, 1, 1, tzinfo=UTC)
STAMP = "2030-01-01T00:00:00Z"
_GENERATED = ("ResourceSlice", "DeviceTaintRule", "Pod")


class Recorded:
    def __init__(self) -> None:
        self._objects: dict[str, Document] = {}

    def answer(self, step: Document) -> tuple[int, Document | Status]:
        try:
            return self._serve(step)
        except ApiError as error:
            return error.status.code, error.status

    def _serve(self, step: Document) -> tuple[int, Document | Status]:
        version, plural, name, subresource = _split(step["path"])
        kind = find_plural(version, plural)
        assert kind is not None, step["path"]
        query = step.get("query") or {}
        manager = manager_name(query.get("fieldManager", ""), "")
        tracker = FieldTracker(version, kind.kind, subresource=subresource)
        live = self._objects.get(f"{plural}/{name}")
        if step["method"] == "GET":
            return (200, live) if live else (404, not_found(plural, kind.group, name))
        if step["method"] == "POST":
            made = update(tracker, None, _decoded(step["body"]), manager=manager, now=STAMP)
            return 201, self._store(plural, _new(made))
        if step["method"] == "PUT":
            assert live is not None
            new = _reset(live, _decoded({**step["body"]}), subresource)
            return 200, self._store(plural, update(tracker, live, new, manager=manager, now=STAMP))
        return self._patch(step, tracker, live, plural, subresource, manager)

    def _patch(
        self, step: Document, tracker: FieldTracker, live: Document | None, plural: str, subresource: str, manager: str
    ) -> tuple[int, Document]:
        body = step["raw"].encode() if "raw" in step else json.dumps(step["body"]).encode()
        kind = step["headers"]["Content-Type"]
        dry = bool((step.get("query") or {}).get("dryRun"))
        if kind == APPLY_PATCH:
            force = (step.get("query") or {}).get("force") == "true"
            result = tracker.apply(live, read_applied(body), manager=manager, now=STAMP, force=force)
            new = _decoded(result)
            if live is None:
                return 201, self._store(plural, _new(new), dry=dry)
            return 200, self._store(plural, _reset(live, new, subresource))
        assert live is not None
        version = live["apiVersion"]
        patched = apply_patch(PatchBody(kind, body), live, schema=atom_of(version, live["kind"]))
        new = update(tracker, live, _reset(live, _decoded(patched), subresource), manager=manager, now=STAMP)
        unchanged = without_times(new) == without_times(live)
        return 200, self._store(plural, live if unchanged else new)

    def _store(self, plural: str, document: Document, *, dry: bool = False) -> Document:
        key = f"{plural}/{document['metadata']['name']}"
        before = self._objects.get(key)
        if document["kind"] in _GENERATED:
            changed = before is not None and before.get("spec") != document.get("spec")
            previous = before["metadata"]["generation"] if before else 1
            document["metadata"]["generation"] = previous + changed
        if not dry:
            self._objects[key] = document
        return document


def _split(path: str) -> tuple[str, str, str, str]:
    parts = path.strip("/").split("/")
    version = parts[1] if parts[0] == "api" else "/".join(parts[1:3])
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    if rest[0] == "namespaces":
        rest = rest[2:]
    rest += [""] * (3 - len(rest))
    return version, rest[0], rest[1], rest[2]


def _decoded(document: Document) -> Document:
    found = decode_plain(document)
    wire = to_wire(set_defaults(found.object, NOW), found.version)
    entries = (document.get("metadata") or {}).get("managedFields")
    if entries is not None:
        wire["metadata"]["managedFields"] = entries
    return wire


def _new(document: Document) -> Document:
    metadata = {**document["metadata"], "uid": "<uid>", "resourceVersion": "<rv>", "creationTimestamp": STAMP}
    return {**document, "metadata": metadata}


def _reset(live: Document, new: Document, subresource: str) -> Document:
    """A write reaches either the status or the rest."""
    kept = {
        key: live["metadata"][key]
        for key in ("uid", "resourceVersion", "creationTimestamp", "generation")
        if key in live["metadata"]
    }
    metadata = {**new["metadata"], **kept}
    if subresource == "status":
        managed = new["metadata"].get("managedFields")
        metadata = {**live["metadata"], **({"managedFields": managed} if managed else {})}
        return {**live, "metadata": metadata, "status": new.get("status", {})}
    return {**new, "metadata": metadata, **({"status": live["status"]} if "status" in live else {})}
