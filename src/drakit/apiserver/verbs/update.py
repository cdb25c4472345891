"""Replace an object, or one of its subresources.

In:  a PUT.
Out: the stored object. An object that is being deleted and loses its last finalizer is removed; a PUT that changes
     nothing writes nothing.
"""

from __future__ import annotations

from typing import Any

from drakit.api.objects.plain import Plain
from drakit.apiserver.requests.options import WriteOptions, write_options
from drakit.apiserver.storage.objects import StoredObject
from drakit.apiserver.storage.objectstore import Conflict, conflict, not_found
from drakit.apiserver.verbs.context import ApiCall, ServerContext
from drakit.apiserver.verbs.write import (
    check_place,
    check_revision,
    read_sent,
    repeat_on_conflict,
    write_new,
    write_over,
)


async def update(context: ServerContext, call: ApiCall) -> tuple[StoredObject, bool]:
    """Handle a PUT; also tell whether the object is new."""
    options = write_options(call.request, "UpdateOptions")
    # Before the body is decoded: parts that the client did not change are found by comparing with the stored object.
    old = await context.objects.find(call.kind, call.namespace, call.name)
    call.old_size = old.size if old is not None else 0
    sent, document = await context.beside(call.size, read_sent, context, call, options, old)
    check_place(call, document)
    try:
        return await _write(context, call, old, document, options, sent=sent)
    except Conflict:
        pass  # from here on the object is read again before each attempt

    async def write_once() -> tuple[StoredObject, bool]:
        current = await context.objects.find(call.kind, call.namespace, call.name)
        return await _write(context, call, current, document, options, sent=sent)

    return await repeat_on_conflict(call.kind, call.name, write_once)


async def _write(
    context: ServerContext,
    call: ApiCall,
    old: StoredObject | None,
    document: Plain,
    options: WriteOptions,
    *,
    sent: Any,
) -> tuple[StoredObject, bool]:
    """One attempt. Raise store.Conflict when it may be repeated: the client named no resourceVersion."""
    if old is None:
        if not call.strategy.create_on_update or call.subresource:
            raise not_found(call.kind, call.name)
        return await write_new(context, call, document, options, sent=sent), True
    _check_uid(call, old, document)
    # A copy for each attempt: admission changes it.
    new = {**document, "metadata": dict(document["metadata"])}
    conditional = check_revision(call, old, new)
    try:
        return await write_over(context, call, old, new, options, sent=sent), False
    except Conflict:
        if conditional:
            raise conflict(call.kind, call.name) from None
        raise


def _check_uid(call: ApiCall, old: StoredObject, document: Plain) -> None:
    """A client that names a uid means that object, not another one of the same name."""
    given = document["metadata"].get("uid", "")
    if given and given != old.uid:
        why = (
            f"StorageError: invalid object, Code: 4, Key: {_etcd_key(call)}, ResourceVersion: 0, AdditionalErrorMsg: "
            f"Precondition failed: UID in precondition: {given}, UID in object meta: {old.uid}"
        )
        raise conflict(call.kind, call.name, why)


def _etcd_key(call: ApiCall) -> str:
    """Where Kubernetes keeps the object: its group is no part of that."""
    return "/".join(("/registry", call.kind.plural, *([call.namespace] if call.namespace else ()), call.name))
