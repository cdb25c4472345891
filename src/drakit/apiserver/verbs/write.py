"""The write path: what create, update, patch, apply and scale share.

In:  an object that a client sent, or that a patch made of the stored one.
Out: the stored object.

A write takes these steps, in this order:

    read      the body becomes a document in the storage version, with defaults
    place     name and namespace must be those of the path
    track     `managedFields` say who set which field
    admit     plugins may change the object
    prepare   fields that are not the client's to set get their value back; the kind sets its own
    drop      fields of disabled features go
    validate  the rules of the kind, then the plugins that only refuse
    store     compare and swap; a dry run stops here
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from drakit.api.objects.plain import Plain
from drakit.api.registry import Kind
from drakit.api.schemas.compiler import shape_of
from drakit.apiserver.admission import rules
from drakit.apiserver.admission.chain import CREATE, UPDATE, ObjectChange, WriteGuard
from drakit.apiserver.auth.authorization import require
from drakit.apiserver.failures import ApiError, bad_request
from drakit.apiserver.requests.bodies import has_spaced_parameters, incoming, overlong_parameters, read_body
from drakit.apiserver.requests.options import WriteOptions, parse_revision
from drakit.apiserver.storage.objects import StoredObject
from drakit.apiserver.storage.objectstore import Conflict, KeyExists, conflict
from drakit.apiserver.strategies.base import restore
from drakit.apiserver.verbs.context import ApiCall, ServerContext
from drakit.apiserver.verbs.managedfields import manager_of, precomputed_of, track
from drakit.apiserver.verbs.ownerreferences import drop_admitted_duplicates, drop_sent_duplicates
from drakit.base import fields, names, status
from drakit.base.fields import Path
from drakit.base.status import StatusDetails
from drakit.store import Overtaken

T = TypeVar("T")
TRIES = 100
"""How often a write without a resourceVersion is repeated after conflicts. Each conflict is another's success."""
_NAME_TRIES = 8
_NOTHING: Mapping[str, Any] = {}
CREATE_VERB = "create"
_NOT_ON_CREATE = ("selfLink", "deletionTimestamp", "deletionGracePeriodSeconds")
_SET_BY_SERVER = ("creationTimestamp", "generation", "selfLink")
_NEVER_UNDONE = ("deletionTimestamp", "deletionGracePeriodSeconds")
_COMPARED_APART = ("resourceVersion", "managedFields")


async def repeat_on_conflict(kind: Kind, name: str, write_once: Callable[[], Awaitable[T]]) -> T:
    """Call `write_once`, which reads and writes, until nobody else writes in between."""
    for _ in range(TRIES):
        try:
            return await write_once()
        except Conflict:
            continue
    raise conflict(kind, name)


def read_sent(
    context: ServerContext, call: ApiCall, options: WriteOptions, old: StoredObject | None = None
) -> tuple[Any, Plain]:
    """The body of a request, and the object in it; the client is warned about unknown fields.

    Parts that the object shares with the stored one are passed over.
    """
    sent = read_body(call.request, old)
    if sent is None:
        raise bad_request("the body of the request is empty: expected an object")
    # Strict refuses unknown and duplicate fields here. Warn lets them pass, and the client is told below.
    strict = options.validation == "Strict"
    found = incoming(
        call.kind,
        call.version,
        sent,
        context.now(),
        strict=strict,
        known=old.document_in(call.version) if old is not None else _NOTHING,
        sent=call.request.document,
    )
    call.completed = found.completed
    if options.validation == "Warn":
        call.warnings.extend(found.warnings)
    call.spaced_parameters = call.strategy.opaque and has_spaced_parameters(call.request, found.document)
    return sent, found.document


def check_place(call: ApiCall, document: Plain) -> None:
    """Require the namespace of the path, and its name if it has one. Fill the namespace in, or clear it."""
    metadata = document.setdefault("metadata", {})
    namespace = call.namespace
    if not call.kind.namespaced:
        metadata.pop("namespace", None)
    # An empty namespace in the object counts as none.
    if metadata.get("namespace", namespace) not in (namespace, ""):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if namespace:
        metadata["namespace"] = namespace
    name = metadata.get("name", "")
    if call.name and not name:
        raise bad_request(
            f"the name of the object ({call.name} based on URL) was undeterminable: name must be provided"
        )
    if call.name and name != call.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({call.name})")


def check_revision(call: ApiCall, old: StoredObject, new: Plain) -> bool:
    """Whether the client names the resourceVersion that it changes. It must be the stored one."""
    given = new["metadata"].get("resourceVersion", "")
    # "0" means "any version" in a read, and so no precondition in a write.
    if given and given != "0":
        if parse_revision(given) != old.revision:
            raise conflict(call.kind, call.name)
        return True
    if not call.strategy.unconditional:
        error = fields.invalid(Path("metadata") / "resourceVersion", 0, "must be specified for an update")
        # Here Kubernetes names the resource, not the kind.
        raise ApiError(status.invalid(call.kind.plural, call.kind.group, call.name, [error]))
    # Plugins and policies see the version that is changed, also if the client did not name it.
    new["metadata"]["resourceVersion"] = str(old.revision)
    return False


async def write_new(
    context: ServerContext,
    call: ApiCall,
    document: Plain,
    options: WriteOptions,
    *,
    sent: Any = None,
    applied: bool = False,
) -> StoredObject:
    """Store a new object. A generated name that is taken is generated again."""
    if document["metadata"].pop("resourceVersion", ""):
        raise bad_request("resourceVersion should not be set on objects to be created")
    prefix = "" if document["metadata"].get("name") else document["metadata"].get("generateName", "")
    for attempt in range(_NAME_TRIES):
        # Admission changes its copy: the next attempt starts from what the client sent.
        new = {**document, "metadata": dict(document["metadata"])}
        if prefix:
            new["metadata"]["name"] = names.generate_name(prefix, context.random)
        try:
            return await _write_new_once(context, call, new, options, sent=sent, applied=applied)
        except KeyExists:
            if not prefix or attempt == _NAME_TRIES - 1:
                raise _name_taken(call, new["metadata"]["name"], generated=bool(prefix)) from None
    raise AssertionError("unreachable")


async def _write_new_once(
    context: ServerContext, call: ApiCall, new: Plain, options: WriteOptions, *, sent: Any, applied: bool
) -> StoredObject:
    metadata, now, size = new["metadata"], context.timestamp(), call.size
    for name in _NOT_ON_CREATE:
        metadata.pop(name, None)
    # Each attempt is another object, with a uid of its own.
    metadata.update(uid=context.new_uid(), creationTimestamp=now)
    drop_sent_duplicates(call, metadata)
    if not applied:  # an apply has tracked its fields already
        await context.beside(size, track, call, None, new, manager_of(call.request, options), now)
    change = call.change(CREATE, metadata.get("name", ""), new=new, old=None, dry_run=options.dry_run, sent=sent)
    await context.admission.admit(change)
    drop_admitted_duplicates(call, change.document["metadata"])
    # After admission: no plugin can set what only the server sets.
    await context.beside(size, _prepare_new, context, call, change)
    # The limit of opaque parameters counts their text as it was sent. The rules see them without spaces.
    if errors := await context.rules.check(change) or overlong_parameters(call.request, call.kind.kind):
        raise rules.refusal(change, errors)
    if call.target.verb != CREATE_VERB:
        # A PATCH or PUT that creates needs the right to create as well. A POST was authorized by that right.
        await require(context.authorizer, call.attributes(CREATE_VERB))
    await context.admission.validate(change)
    call.warnings.extend(call.strategy.warnings(new, None))
    return await _store_new(context, call, change, new)


def _prepare_new(context: ServerContext, call: ApiCall, change: ObjectChange) -> None:
    strategy, new, user = call.strategy, change.document, call.user
    strategy.prepare_create(new)
    strategy.set_requester(new, user.name, user.uid, user.groups, user.extra)
    # A kind that has no generation keeps what a client sent, as upstream.
    if strategy.generation:
        new["metadata"]["generation"] = 1
    _complete(call, new)
    context.rules.drop_disabled(change)


async def _store_new(context: ServerContext, call: ApiCall, change: ObjectChange, new: Plain) -> StoredObject:
    objects, kind, namespace = context.objects, change.kind, new["metadata"].get("namespace", "")
    if not change.dry_run:
        return await objects.create(
            kind,
            namespace,
            new,
            spaced_parameters=call.spaced_parameters,
            precomputed=precomputed_of(call, change),
        )
    # The store would find this out by itself; a dry run does not get there.
    if await objects.find(kind, namespace, change.name) is not None:
        raise ApiError(status.already_exists(kind.plural, kind.group, change.name))
    return await context.beside(call.size, objects.dry_run, kind, namespace, new)


def _name_taken(call: ApiCall, name: str, *, generated: bool) -> ApiError:
    kind = call.kind
    if not generated:
        return ApiError(status.already_exists(kind.plural, kind.group, name))
    message = (
        f'{kind.qualified} "{name}" already exists, the server was not able to generate a unique name for the object'
    )
    details = StatusDetails(name=name, group=kind.group, kind=kind.plural)
    return ApiError(status.failure(409, "AlreadyExists", message, details))


async def write_over(
    context: ServerContext,
    call: ApiCall,
    old: StoredObject,
    new: Plain,
    options: WriteOptions,
    *,
    sent: Any = None,
    applied: bool = False,
) -> StoredObject:
    """Store `new` in the place of `old`. Raise store.Conflict when somebody else wrote since `old` was read."""
    now, size, before = context.timestamp(), call.size, old.document
    drop_sent_duplicates(call, new["metadata"])
    if not applied:  # an apply has tracked its fields already
        await context.beside(size, track, call, old, new, manager_of(call.request, options), now)
    _carry_over(call, new["metadata"], before["metadata"])
    change = call.change(UPDATE, call.name, new=new, old=old, dry_run=options.dry_run, sent=sent)
    await context.admission.admit(change)
    drop_admitted_duplicates(call, change.document["metadata"])
    await context.beside(size, _prepare_update, context, call, change, old, now)
    if errors := await context.rules.check(change):
        raise rules.refusal(change, errors)
    try:
        await context.admission.validate(change)
        call.warnings.extend(call.strategy.warnings(new, before))
        return await _store_update(context, call, old, change)
    finally:
        change.end()


def _carry_over(call: ApiCall, new: Plain, old: Mapping[str, Any]) -> None:
    """Give metadata that only the server sets its old value; fill in what a client may leave out."""
    restore(new, old, *_SET_BY_SERVER)
    # A deletion cannot be taken back by an update.
    for name in _NEVER_UNDONE:
        if name in old:
            new[name] = old[name]
    new.setdefault("uid", old.get("uid", ""))
    new.setdefault("name", call.name)


def _prepare_update(context: ServerContext, call: ApiCall, change: ObjectChange, old: StoredObject, now: str) -> None:
    strategy, new, before = call.strategy, change.document, old.document
    strategy.prepare(call.subresource, new, before, now)
    _complete(call, new, before)
    if context.rules.drop_disabled(change):
        _complete(call, new, before)
    # After everything that can change the spec: the generation counts what is stored, not what was sent.
    respaced = call.spaced_parameters != old.spaced_parameters
    if strategy.generation and (strategy.changes_generation(new, before) or respaced):
        new["metadata"]["generation"] = old.metadata.get("generation", 0) + 1
        change.typed = None  # made before, without the new generation


def _complete(call: ApiCall, new: Plain, old: Mapping[str, Any] = _NOTHING) -> None:
    """Bring a changed document into the form that is stored: every field that the schema always writes is there.

    A part that is the same object as in `old`, or as it was decoded, has that form already and is passed over.
    """
    shared = {name: part for name, part in new.items() if part is old.get(name)}
    known = {**call.completed, **shared}
    entries = new["metadata"].get("managedFields")
    if call.managed_fields is not None and entries is call.managed_fields[0]:  # written just now
        known["metadata"] = {**(known.get("metadata") or {}), "managedFields": entries}
    completed = shape_of(call.kind.internal_version, call.kind.kind).complete(new, known)
    new.clear()
    new.update(completed)


async def _store_update(context: ServerContext, call: ApiCall, old: StoredObject, change: ObjectChange) -> StoredObject:
    """Write the object; remove it if this write ends its deletion; write nothing if it is unchanged."""
    objects, new, before = context.objects, change.document, old.document
    if _ends_deletion(call, new, before):
        revision = old.revision if change.dry_run else (await objects.delete(old)).revision
        return objects.unsaved(call.kind, call.namespace, new, revision)
    # No new revision for a write without effect: controllers that write what is there already would wake each other.
    if _unchanged(new, before):
        return old
    if change.dry_run:
        return await context.beside(call.size, objects.dry_run, call.kind, call.namespace, new, old.revision)
    store = partial(
        objects.update, old, new, spaced_parameters=call.spaced_parameters, precomputed=precomputed_of(call, change)
    )
    return await store() if change.guard is None else await _guarded(store, change.guard)


async def _guarded(store: Callable[..., Awaitable[StoredObject]], guard: WriteGuard) -> StoredObject:
    """Store as long as the judgement holds. Each repetition is another's success."""
    while True:
        try:
            return await store(guard=guard.terms)
        except Overtaken:
            await guard.judge_again()


def _ends_deletion(call: ApiCall, new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Whether this write takes the last finalizer of an object that is being deleted."""
    metadata = new["metadata"]
    if not metadata.get("deletionTimestamp") or metadata.get("finalizers"):
        return False
    if call.kind.kind == "Namespace" and not call.kind.group:
        return not new.get("spec", {}).get("finalizers")
    # While a grace period runs, the pod's node decides when the object ends: it deletes with a period of zero.
    return bool(old["metadata"].get("deletionGracePeriodSeconds") == 0)


def _unchanged(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Whether nothing differs but resourceVersion and the times in managedFields."""
    if new.keys() != old.keys():
        return False
    for name, part in new.items():
        if part is not old[name] and name != "metadata" and part != old[name]:
            return False
    after, before = new["metadata"], old["metadata"]
    for name in after.keys() | before.keys():
        if name not in _COMPARED_APART and after.get(name) != before.get(name):
            return False
    return _without_times(after) == _without_times(before)


def _without_times(metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in entry.items() if name != "time"}
        for entry in metadata.get("managedFields") or ()
    ]
