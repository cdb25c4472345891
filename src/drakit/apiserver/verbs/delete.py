"""Delete an object, or all that a selection finds.

In:  a DELETE with its options.
Out: what is gone, or what has begun to go: an object with finalizers or a grace period stays until those are over.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec

from drakit.api.registry import Kind
from drakit.api.text.times import format_time, parse_time
from drakit.apiserver.admission.chain import DELETE
from drakit.apiserver.failures import ApiError
from drakit.apiserver.requests.bodies import read_body
from drakit.apiserver.requests.options import DeleteOptions, Preconditions, delete_options
from drakit.apiserver.storage.objects import Kept, Plain
from drakit.apiserver.storage.objectstore import Conflict, conflict
from drakit.apiserver.verbs.context import Call, Machinery
from drakit.base import status

TRIES = 100
ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"


class Deleted(msgspec.Struct, frozen=True):
    """`gone` says that the object is no more; otherwise it is being deleted."""

    object: Kept
    gone: bool


async def delete(machinery: Machinery, call: Call) -> Deleted:
    """Handle a DELETE of one object."""
    options = delete_options(call.request, read_body(call.request))
    return await delete_object(machinery, call, call.name, options)


async def delete_found(machinery: Machinery, call: Call, found: Kept, options: DeleteOptions) -> None:
    """Delete one object of a collection; that somebody else was quicker is fine."""
    try:
        await delete_object(machinery, call, found.name, options, namespace=found.namespace)
    except ApiError as error:
        if error.status.code != 404:
            raise


async def delete_object(
    machinery: Machinery, call: Call, name: str, options: DeleteOptions, *, namespace: str | None = None
) -> Deleted:
    place = call.namespace if namespace is None else namespace
    for attempt in range(TRIES):
        old = await machinery.keeper.get(call.kind, place, name)
        check_preconditions(call.kind, old, options.preconditions)
        change = call.change(DELETE, name, new=None, old=old, dry_run=options.dry_run)
        await machinery.admission.admit(change)
        await machinery.admission.validate(change)
        try:
            return await _delete(machinery, call, old, options)
        except Conflict:
            if attempt == TRIES - 1:
                raise conflict(call.kind, name) from None
    raise AssertionError("unreachable")


def check_preconditions(kind: Kind, old: Kept, given: Preconditions) -> None:
    if given.uid is not None and given.uid != old.uid:
        raise _unmet(kind, old, "UID", given.uid, old.uid, "The object might have been deleted and then recreated")
    revision = str(old.revision)
    if given.resource_version is not None and given.resource_version != revision:
        raise _unmet(
            kind, old, "ResourceVersion", given.resource_version, revision, "The object might have been modified"
        )


def _unmet(kind: Kind, old: Kept, what: str, wanted: str, found: str, hint: str) -> ApiError:
    why = f"the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). {hint}"
    return ApiError(status.conflict(kind.kind, kind.group, old.name, why))


async def _delete(machinery: Machinery, call: Call, old: Kept, options: DeleteOptions) -> Deleted:
    marked = mark(machinery, call, old, options)
    if options.dry_run:
        shown = machinery.keeper.unsaved(call.kind, old.namespace, marked.document, old.revision)
        return Deleted(shown if marked.written else old, gone=marked.ends)
    written = await machinery.keeper.update(old, marked.document) if marked.written else old
    if not marked.ends:
        return Deleted(written, gone=False)
    gone = await machinery.keeper.delete(written)
    return Deleted(gone, gone=True)


class Marked(msgspec.Struct, frozen=True):
    """What a deletion makes of an object: whether the mark is to be written, and whether the object ends with it."""

    document: Plain
    written: bool
    ends: bool


def mark(machinery: Machinery, call: Call, old: Kept, options: DeleteOptions) -> Marked:
    """Mark an object as being deleted, with its grace period and finalizers.

    A kind that has grace periods is marked also when there is nothing to wait for: those who watch see it go.
    """
    document = old.document
    metadata = dict(document["metadata"])
    if options.propagation is not None:
        finalizers = _finalizers(metadata.get("finalizers") or [], options.propagation)
        if finalizers or metadata.get("finalizers"):
            metadata["finalizers"] = finalizers
    held = bool(metadata.get("finalizers")) or bool(_namespace_finalizers(call.kind, document))
    grace = call.strategy.default_grace(document, options.grace)
    if metadata.get("deletionTimestamp"):
        _hurry(machinery, metadata, grace)
    elif held or grace is not None:
        _begin(machinery, metadata, grace or 0)
    marked = {**document, "metadata": metadata}
    if held and call.kind.kind == "Namespace" and not call.kind.group:
        marked["status"] = {**document.get("status", {}), "phase": "Terminating"}
    ends = not held and not metadata.get("deletionGracePeriodSeconds")
    written = marked != document and (held or grace is not None)
    return Marked(marked, written, ends)


def _begin(machinery: Machinery, metadata: Plain, seconds: int) -> None:
    metadata["deletionTimestamp"] = format_time(machinery.now() + timedelta(seconds=seconds))
    metadata["deletionGracePeriodSeconds"] = seconds
    if metadata.get("generation"):
        metadata["generation"] += 1


def _hurry(machinery: Machinery, metadata: Plain, grace: int | None) -> None:
    """Deleting what is being deleted may only make it go sooner."""
    left = metadata.get("deletionGracePeriodSeconds") or 0
    if grace is not None and grace < left:
        begun = parse_time(metadata["deletionTimestamp"]) - timedelta(seconds=left)
        metadata["deletionTimestamp"] = format_time(max(begun + timedelta(seconds=grace), machinery.now()))
        metadata["deletionGracePeriodSeconds"] = grace


def _finalizers(current: list[str], propagation: str) -> list[str]:
    """The garbage collector's finalizers follow the policy."""
    kept = [name for name in current if name not in (ORPHAN, FOREGROUND)]
    added = {"Orphan": [ORPHAN], "Foreground": [FOREGROUND]}.get(propagation, [])
    return kept + added


def _namespace_finalizers(kind: Kind, document: Mapping[str, Any]) -> list[str]:
    if kind.kind != "Namespace" or kind.group:
        return []
    return list(document.get("spec", {}).get("finalizers") or ())
