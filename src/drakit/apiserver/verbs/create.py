"""Create an object.

In:  a POST to a collection (or an apply, or an update, of an object that is not there and may be made so).
Out: the stored object; 409 when the name is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import compress
from operator import is_
from typing import Any

from drakit.api.schemas.shaping import shape_of
from drakit.apiserver.admission import rules
from drakit.apiserver.admission.chain import CREATE, Change
from drakit.apiserver.failures import ApiError, bad_request
from drakit.apiserver.requests.bodies import Incoming, incoming, read_body, sent_loosely
from drakit.apiserver.requests.options import WriteOptions, write_options
from drakit.apiserver.storage.objects import Kept, Plain
from drakit.apiserver.storage.objectstore import KeyExists
from drakit.apiserver.verbs.context import Call, Machinery
from drakit.apiserver.verbs.managedfields import known_of, manager_of, track
from drakit.base import names, status
from drakit.base.status import StatusDetails

_TRIES = 8
_NOTHING: Mapping[str, Any] = {}
_SERVER_SET = ("selfLink", "deletionTimestamp", "deletionGracePeriodSeconds")


async def create(machinery: Machinery, call: Call) -> Kept:
    """Handle a POST."""
    options = write_options(call.request, "CreateOptions")
    sent = read_body(call.request)
    found = read_object(machinery, call, sent, options)
    check_place(call, found.document)
    return await create_object(machinery, call, found.document, options, sent=sent)


def read_object(
    machinery: Machinery, call: Call, sent: Any, options: WriteOptions, known: Mapping[str, Any] = _NOTHING
) -> Incoming:
    """The object in the body, and warnings about what in it is not understood; `known` as for `incoming`."""
    if sent is None:
        raise bad_request("the body of the request is empty: expected an object")
    strict = options.validation == "Strict"
    found = incoming(
        call.kind,
        call.version,
        sent,
        machinery.now(),
        strict=strict,
        known=known,
        clean=call.request.document is not None,
    )
    call.written = found.written
    if options.validation == "Warn":
        call.warnings.extend(found.warnings)
    call.loose = call.strategy.opaque and sent_loosely(call.request, found.document)
    return found


def check_place(call: Call, document: Plain) -> None:
    """The namespace is the path's; the name too, where the path has one."""
    metadata = document.setdefault("metadata", {})
    namespace = call.namespace
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


async def create_object(
    machinery: Machinery, call: Call, document: Plain, options: WriteOptions, *, sent: Any = None, applied: bool = False
) -> Kept:
    """Store a new object, under another generated name if the first one is taken."""
    if document["metadata"].pop("resourceVersion", ""):
        raise bad_request("resourceVersion should not be set on objects to be created")
    generated = not document["metadata"].get("name") and document["metadata"].get("generateName")
    for attempt in range(_TRIES):
        new = {**document, "metadata": dict(document["metadata"])}
        if generated:
            new["metadata"]["name"] = names.generate_name(generated, machinery.random)
        try:
            return await _try_create(machinery, call, new, options, sent=sent, applied=applied)
        except KeyExists:
            if not generated or attempt == _TRIES - 1:
                raise _taken(call, new["metadata"]["name"], generated=bool(generated)) from None
    raise AssertionError("unreachable")


async def _try_create(
    machinery: Machinery, call: Call, new: Plain, options: WriteOptions, *, sent: Any, applied: bool
) -> Kept:
    metadata, now = new["metadata"], machinery.timestamp()
    for name in _SERVER_SET:
        metadata.pop(name, None)
    metadata.update(uid=machinery.new_uid(), creationTimestamp=now)
    if not applied:
        track(call, None, new, manager_of(call.request, options), now)
    change = call.change(CREATE, metadata.get("name", ""), new=new, old=None, dry_run=options.dry_run, sent=sent)
    await machinery.admission.admit(change)
    prepare(call, new)
    machinery.rules.drop(change)
    await rules.require(machinery.rules, change)
    await machinery.admission.validate(change)
    call.warnings.extend(call.strategy.warnings(new, None))
    return await _store(machinery, call, change, new)


def prepare(call: Call, new: Plain) -> None:
    """What the kind sets on creation."""
    call.strategy.prepare_create(new)
    new["metadata"].pop("generation", None)
    if call.strategy.generation:
        new["metadata"]["generation"] = 1
    complete(call, new)


def complete(call: Call, new: Plain, old: Mapping[str, Any] = _NOTHING) -> None:
    """Give a document that was changed the form in which it is written again.

    What was taken from the stored object has it, and so has what was read and not changed since.
    """
    shared = compress(new, map(is_, new.values(), map(old.get, new)))
    known = {**call.written, **{name: new[name] for name in shared}}
    entries = new["metadata"].get("managedFields")
    if call.owned is not None and entries is call.owned[0]:  # written just now
        known["metadata"] = {**(known.get("metadata") or {}), "managedFields": entries}
    completed = shape_of(call.kind.internal_version, call.kind.kind).complete(new, known)
    new.clear()
    new.update(completed)


async def _store(machinery: Machinery, call: Call, change: Change, new: Plain) -> Kept:
    keeper, kind, namespace = machinery.keeper, change.kind, new["metadata"].get("namespace", "")
    if not change.dry_run:
        return await keeper.create(kind, namespace, new, loose=call.loose, known=known_of(call, change))
    if await keeper.find(kind, namespace, change.name) is not None:
        raise _exists(change)
    return keeper.unsaved(kind, namespace, new)


def _exists(change: Change) -> ApiError:
    return ApiError(status.already_exists(change.kind.plural, change.kind.group, change.name))


def _taken(call: Call, name: str, *, generated: bool) -> ApiError:
    kind = call.kind
    if not generated:
        return ApiError(status.already_exists(kind.plural, kind.group, name))
    message = (
        f'{kind.qualified} "{name}" already exists, the server was not able to generate a unique name for the object'
    )
    details = StatusDetails(name=name, group=kind.group, kind=kind.plural)
    return ApiError(status.failure(409, "AlreadyExists", message, details))
