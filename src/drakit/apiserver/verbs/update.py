"""Replace an object, or its status.

In:  a PUT; or what a patch made of an object.
Out: the stored object. One that is on its way out and has lost its last finalizer is removed instead; a write that
     changes nothing writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drakit.apiserver.admission import rules
from drakit.apiserver.admission.chain import UPDATE, Change
from drakit.apiserver.failures import ApiError
from drakit.apiserver.requests.bodies import read_body
from drakit.apiserver.requests.options import WriteOptions, parse_revision, write_options
from drakit.apiserver.storage.objects import Kept, Plain
from drakit.apiserver.storage.objectstore import Conflict, conflict, not_found
from drakit.apiserver.strategies.base import keep
from drakit.apiserver.verbs.context import Call, Machinery
from drakit.apiserver.verbs.create import check_place, complete, create_object, read_object
from drakit.apiserver.verbs.managedfields import known_of, manager_of, track
from drakit.base import fields, status
from drakit.base.fields import Path

TRIES = 100
"""A write that names no version is repeated on what came between: somebody has won each round, so it ends."""
_SERVER_KEPT = ("creationTimestamp", "generation", "selfLink")
_COMPARED_APART = ("resourceVersion", "managedFields")
_NEVER_UNDONE = ("deletionTimestamp", "deletionGracePeriodSeconds")


async def update(machinery: Machinery, call: Call) -> tuple[Kept, bool]:
    """Handle a PUT; whether the object is new."""
    options = write_options(call.request, "UpdateOptions")
    old = await machinery.keeper.find(call.kind, call.namespace, call.name)
    known = old.document_in(call.version) if old is not None else {}
    sent = read_body(call.request, old)
    document = read_object(machinery, call, sent, options, known).document
    check_place(call, document)
    for attempt in range(TRIES):
        if attempt:
            old = await machinery.keeper.find(call.kind, call.namespace, call.name)
        if old is None:
            if not call.strategy.create_on_update or call.subresource:
                raise not_found(call.kind, call.name)
            return await create_object(machinery, call, document, options, sent=sent), True
        _check_uid(call, old, document)
        new = {**document, "metadata": dict(document["metadata"])}
        conditional = check_revision(call, old, new)
        try:
            return await replace(machinery, call, old, new, options, sent=sent), False
        except Conflict:
            if conditional or attempt == TRIES - 1:
                raise conflict(call.kind, call.name) from None
    raise AssertionError("unreachable")


def _check_uid(call: Call, old: Kept, document: Plain) -> None:
    """An update that names a uid is meant for that object, not for another of the same name."""
    given = document["metadata"].get("uid", "")
    if given and given != old.uid:
        why = (
            f"StorageError: invalid object, Code: 4, Key: {old.key}, ResourceVersion: 0, AdditionalErrorMsg: "
            f"Precondition failed: UID in precondition: {given}, UID in object meta: {old.uid}"
        )
        raise conflict(call.kind, call.name, why)


def check_revision(call: Call, old: Kept, new: Plain) -> bool:
    """Whether the client has said which version it changes; it must be the stored one."""
    given = new["metadata"].get("resourceVersion", "")
    if given and given != "0":
        if parse_revision(given) != old.revision:
            raise conflict(call.kind, call.name)
        return True
    if not call.strategy.unconditional:
        error = fields.invalid(Path("metadata") / "resourceVersion", 0, "must be specified for an update")
        raise ApiError(status.invalid(call.kind.kind, call.kind.group, call.name, [error]))
    new["metadata"]["resourceVersion"] = str(old.revision)
    return False


async def replace(
    machinery: Machinery,
    call: Call,
    old: Kept,
    new: Plain,
    options: WriteOptions,
    *,
    sent: Any = None,
    applied: bool = False,
) -> Kept:
    """Store `new` in the place of `old`. Raise store.Conflict when somebody was quicker."""
    now = machinery.timestamp()
    if not applied:
        track(call, old, new, manager_of(call.request, options), now)
    carry_over(call, new, old.document)
    change = call.change(UPDATE, call.name, new=new, old=old, dry_run=options.dry_run, sent=sent)
    await machinery.admission.admit(change)
    prepare(machinery, call, change, old, now)
    await rules.require(machinery.rules, change)
    await machinery.admission.validate(change)
    call.warnings.extend(call.strategy.warnings(new, old.document))
    return await store(machinery, call, old, change)


def carry_over(call: Call, new: Plain, old: Mapping[str, Any]) -> None:
    """What the server alone sets stays as it was; what a client may leave out is filled in."""
    for name in _SERVER_KEPT:
        keep(new["metadata"], old["metadata"], name)
    for name in _NEVER_UNDONE:
        if name in old["metadata"]:
            new["metadata"][name] = old["metadata"][name]
    new["metadata"].setdefault("uid", old["metadata"].get("uid", ""))
    new["metadata"].setdefault("name", call.name)


def prepare(machinery: Machinery, call: Call, change: Change, old: Kept, now: str) -> None:
    """What the kind sets back on an update through this door, and the generation that follows from it."""
    strategy, new = call.strategy, change.document
    strategy.prepare(call.subresource, new, old.document, now)
    complete(call, new, old.document)
    if machinery.rules.drop(change):
        complete(call, new, old.document)
    if strategy.generation and (strategy.changes_generation(new, old.document) or call.loose != old.loose):
        new["metadata"]["generation"] = old.metadata.get("generation", 0) + 1
        change.typed = None


async def store(machinery: Machinery, call: Call, old: Kept, change: Change) -> Kept:
    new, dry_run = change.document, change.dry_run
    if ends(call, new, old.document):
        if dry_run:
            return machinery.keeper.unsaved(call.kind, call.namespace, new, old.revision)
        gone = await machinery.keeper.delete(old)
        return machinery.keeper.unsaved(call.kind, call.namespace, new, gone.revision)
    if same(new, old.document):
        return old
    if dry_run:
        return machinery.keeper.unsaved(call.kind, call.namespace, new, old.revision)
    return await machinery.keeper.update(old, new, loose=call.loose, known=known_of(call, change))


def ends(call: Call, new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Whether this write takes away the last thing that kept an object that is being deleted."""
    metadata = new["metadata"]
    if not metadata.get("deletionTimestamp") or metadata.get("finalizers"):
        return False
    if call.kind.kind == "Namespace" and not call.kind.group:
        return not new.get("spec", {}).get("finalizers")
    return bool(old["metadata"].get("deletionGracePeriodSeconds") == 0)


def same(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Equal but for resourceVersion and the times in managedFields: not worth a write."""
    if new.keys() != old.keys():
        return False
    for name, part in new.items():
        if part is not old[name] and name != "metadata" and part != old[name]:
            return False
    after, before = new["metadata"], old["metadata"]
    if any(after.get(name) != before.get(name) for name in after.keys() | before.keys() if name not in _COMPARED_APART):
        return False
    return _timeless(after) == _timeless(before)


def _timeless(metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in entry.items() if name != "time"}
        for entry in metadata.get("managedFields") or ()
    ]
