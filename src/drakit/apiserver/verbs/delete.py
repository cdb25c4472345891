"""Delete an object, or all that a selection finds.

In:  a DELETE with its options.
Out: the object, removed or marked as being deleted. It stays until its finalizers and its grace period are over.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec

from drakit.api.objects.plain import Plain
from drakit.api.registry import Kind
from drakit.api.text.times import format_time, parse_time
from drakit.apiserver.admission.chain import DELETE
from drakit.apiserver.failures import ApiError
from drakit.apiserver.requests.bodies import read_body
from drakit.apiserver.requests.options import DeleteOptions, Preconditions, delete_options
from drakit.apiserver.storage.objects import StoredObject
from drakit.apiserver.verbs.context import ApiCall, ServerContext
from drakit.apiserver.verbs.write import repeat_on_conflict
from drakit.base import status
from drakit.base.wellknown import FOREGROUND_FINALIZER, ORPHAN_FINALIZER


class Deleted(msgspec.Struct, frozen=True):
    """`gone`: the object was removed. Otherwise it is marked, and is removed later."""

    object: StoredObject
    gone: bool


async def delete(context: ServerContext, call: ApiCall) -> Deleted:
    """Handle a DELETE of one object."""
    options = delete_options(call.request, read_body(call.request))
    if call.strategy.deletion_warning and options.propagation is None:
        call.warnings.append(call.strategy.deletion_warning)
    return await delete_object(context, call, call.name, options)


async def delete_found(context: ServerContext, call: ApiCall, found: StoredObject, options: DeleteOptions) -> None:
    """Delete one object of a collection. It is no error if somebody else has removed it."""
    try:
        await delete_object(context, call, found.name, options, namespace=found.namespace)
    except ApiError as error:
        if error.status.code != 404:
            raise


async def delete_object(
    context: ServerContext,
    call: ApiCall,
    name: str,
    options: DeleteOptions,
    *,
    namespace: str | None = None,
    admitted: bool = False,
) -> Deleted:
    """Delete one object. With `admitted` the caller has asked admission."""
    place = call.namespace if namespace is None else namespace

    async def delete_once() -> Deleted:
        old = await context.objects.get(call.kind, place, name)
        check_preconditions(call.kind, old, options.preconditions)
        if not admitted:
            await admit_deletion(context, call, old, dry_run=options.dry_run)
        return await _delete(context, call, old, options)

    return await repeat_on_conflict(call.kind, name, delete_once)


async def admit_deletion(context: ServerContext, call: ApiCall, old: StoredObject, *, dry_run: bool) -> None:
    change = call.change(DELETE, old.name, new=None, old=old, dry_run=dry_run)
    await context.admission.admit(change)
    await context.admission.validate(change)


def check_preconditions(kind: Kind, old: StoredObject, given: Preconditions) -> None:
    if given.uid is not None and given.uid != old.uid:
        raise _unmet(kind, old, "UID", given.uid, old.uid, "The object might have been deleted and then recreated")
    revision = str(old.revision)
    if given.resource_version is not None and given.resource_version != revision:
        raise _unmet(
            kind, old, "ResourceVersion", given.resource_version, revision, "The object might have been modified"
        )


def _unmet(kind: Kind, old: StoredObject, what: str, wanted: str, found: str, hint: str) -> ApiError:
    why = f"the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). {hint}"
    return ApiError(status.conflict(kind.kind, kind.group, old.name, why))


async def _delete(context: ServerContext, call: ApiCall, old: StoredObject, options: DeleteOptions) -> Deleted:
    marked = mark(context, call, old, options)
    if options.dry_run:
        shown = context.objects.unsaved(call.kind, old.namespace, marked.document, old.revision)
        return Deleted(shown if marked.changed else old, gone=marked.ends)
    current = await context.objects.update(old, marked.document) if marked.changed else old
    if not marked.ends:
        return Deleted(current, gone=False)
    # A crash in between leaves an object that is marked and that nothing holds. The next deletion removes it.
    gone = await context.objects.delete(current)
    return Deleted(gone, gone=True)


class Marked(msgspec.Struct, frozen=True):
    """What a deletion makes of an object: whether that is to be stored, and whether the object is then removed."""

    document: Plain
    changed: bool
    ends: bool


def mark(context: ServerContext, call: ApiCall, old: StoredObject, options: DeleteOptions) -> Marked:
    """Mark an object as being deleted, with its grace period and finalizers.

    A kind with grace periods (pods) is marked even if there is nothing to wait for: watchers see the mark before the
    object is removed.
    """
    document = old.document
    metadata = dict(document["metadata"])
    # Without a policy the finalizers stay as they are: the default (Background) needs none.
    propagation = options.propagation or _default_propagation(call, metadata)
    if propagation is not None:
        finalizers = _finalizers(metadata.get("finalizers") or [], propagation)
        if finalizers or metadata.get("finalizers"):
            metadata["finalizers"] = finalizers
    held = bool(metadata.get("finalizers")) or bool(_namespace_finalizers(call.kind, document))
    grace = call.strategy.default_grace(document, options.grace)
    if metadata.get("deletionTimestamp"):
        _hurry(context, metadata, grace)
    elif held or grace is not None:
        _begin(context, metadata, grace or 0)
    marked = {**document, "metadata": metadata}
    # The phase comes with the mark, as upstream: from now on nothing can be created in the namespace.
    if held and call.kind.kind == "Namespace" and not call.kind.group:
        marked["status"] = {**document.get("status", {}), "phase": "Terminating"}
    ends = not held and not metadata.get("deletionGracePeriodSeconds")
    changed = marked != document and (held or grace is not None)
    return Marked(marked, changed, ends)


def _default_propagation(call: ApiCall, metadata: Plain) -> str | None:
    """Some kinds leave their dependents, unless the object already says otherwise."""
    decided = FOREGROUND_FINALIZER in (metadata.get("finalizers") or ())
    return "Orphan" if call.strategy.orphans_dependents and not decided else None


def _begin(context: ServerContext, metadata: Plain, seconds: int) -> None:
    metadata["deletionTimestamp"] = format_time(context.now() + timedelta(seconds=seconds))
    metadata["deletionGracePeriodSeconds"] = seconds
    # Being deleted counts as a change of what is wanted: controllers compare the generation with what they observed.
    if metadata.get("generation"):
        metadata["generation"] += 1


def _hurry(context: ServerContext, metadata: Plain, grace: int | None) -> None:
    """A second deletion may shorten the grace period, never lengthen it."""
    left = metadata.get("deletionGracePeriodSeconds") or 0
    if grace is not None and grace < left:
        # The deletionTimestamp is when the period ends: the deletion began that much earlier.
        begun = parse_time(metadata["deletionTimestamp"]) - timedelta(seconds=left)
        metadata["deletionTimestamp"] = format_time(max(begun + timedelta(seconds=grace), context.now()))
        metadata["deletionGracePeriodSeconds"] = grace


def _finalizers(current: list[str], propagation: str) -> list[str]:
    """Set the garbage collector's finalizer that the propagation policy asks for, and drop the other."""
    others = [name for name in current if name not in (ORPHAN_FINALIZER, FOREGROUND_FINALIZER)]
    added = {"Orphan": [ORPHAN_FINALIZER], "Foreground": [FOREGROUND_FINALIZER]}.get(propagation, [])
    return others + added


def _namespace_finalizers(kind: Kind, document: Mapping[str, Any]) -> list[str]:
    if kind.kind != "Namespace" or kind.group:
        return []
    return list(document.get("spec", {}).get("finalizers") or ())
