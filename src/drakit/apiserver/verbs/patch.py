"""Patch an object: JSON patch, merge patch, strategic merge patch, server-side apply.

In:  a PATCH of one of these four types.
Out: the stored object, and whether it is new: an apply creates what does not exist.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from drakit.api.objects.plain import Plain
from drakit.apiserver.failures import ApiError, unsupported_media_type
from drakit.apiserver.patching import APPLY_PATCH, PATCH_TYPES, PatchBody, apply_patch, atom_of
from drakit.apiserver.patching.rejections import invalid_result
from drakit.apiserver.requests.bodies import Incoming, check_elements, count_elements, incoming, media_type
from drakit.apiserver.requests.options import WriteOptions, invalid_options, write_options
from drakit.apiserver.storage.objects import StoredObject, encode_document
from drakit.apiserver.storage.objectstore import not_found
from drakit.apiserver.verbs.context import ApiCall, ServerContext
from drakit.apiserver.verbs.managedfields import tracker_of
from drakit.apiserver.verbs.write import check_place, check_revision, repeat_on_conflict, write_new, write_over
from drakit.base import fields
from drakit.base.fields import Path

_NOTHING: Mapping[str, Any] = {}


async def patch(context: ServerContext, call: ApiCall) -> tuple[StoredObject, bool]:
    """Handle a PATCH; also tell whether the object is new."""
    kind = media_type(call.request)
    if kind not in PATCH_TYPES:
        raise unsupported_media_type()
    options = write_options(call.request, "PatchOptions")
    _check_options(kind, options)
    # Decoded once, applied again after each conflict: a patch says what to change, not what the result is.
    body = PatchBody(kind, call.request.body, call.request.document)
    applied = await context.beside(call.size, _read, call, body, options)

    async def write_once() -> tuple[StoredObject, bool]:
        old = await context.objects.find(call.kind, call.namespace, call.name)
        if old is not None:
            call.size = max(call.size, old.size)
            return await _patch(context, call, old, body, options), False
        if applied is None or call.subresource:
            raise not_found(call.kind, call.name)
        return await _create(context, call, applied, options), True

    return await repeat_on_conflict(call.kind, call.name, write_once)


def _read(call: ApiCall, body: PatchBody, options: WriteOptions) -> Plain | None:
    """Decode the patch. The object, if it is one to apply."""
    applied: Plain | None = None
    if body.content_type == APPLY_PATCH:
        applied = count_elements(body.data, len(call.request.body))
    else:
        check_elements(call.request.body)
    _note_findings(call, body, options)
    return applied


def _check_options(kind: str, options: WriteOptions) -> None:
    found = []
    if kind == APPLY_PATCH:
        if not options.manager:
            found.append(fields.required(Path("fieldManager"), "is required for apply patch"))
    elif options.force is not None:
        found.append(fields.forbidden(Path("force"), "may not be specified for non-apply patch"))
    if found:
        raise invalid_options("PatchOptions", found)


def _note_findings(call: ApiCall, body: PatchBody, options: WriteOptions) -> None:
    """Report duplicate keys in the patch itself: as an error or as warnings, by fieldValidation."""
    if options.validation == "Ignore":
        return
    found = body.findings()
    if found and options.validation == "Strict":
        raise invalid_result(call.request.body.decode(errors="replace"), f"strict decoding error: {', '.join(found)}")
    call.warnings.extend(found)


async def _patch(
    context: ServerContext, call: ApiCall, old: StoredObject, body: PatchBody, options: WriteOptions
) -> StoredObject:
    applied = body.content_type == APPLY_PATCH
    result, found = await context.beside(call.size, _patched, context, call, old, body, options)
    new, call.completed = found.document, found.completed
    check_place(call, new)
    check_revision(call, old, new)
    return await write_over(context, call, old, new, options, sent=result, applied=applied)


def _patched(
    context: ServerContext, call: ApiCall, old: StoredObject, body: PatchBody, options: WriteOptions
) -> tuple[dict[str, Any], Incoming]:
    """What the patch makes of the object, as it is and decoded."""
    live, applied = old.document_in(call.version), body.content_type == APPLY_PATCH
    if applied:
        result = _applied(context, call, live, body.data, options)
    else:
        result = apply_patch(body, live, schema=atom_of(call.target.group_version, call.kind.kind))
    return result, _decoded(context, call, result, options, applied=applied, known=live)


async def _create(context: ServerContext, call: ApiCall, applied: Plain, options: WriteOptions) -> StoredObject:
    result = await context.beside(call.size, _applied, context, call, None, applied, options)
    new = (await context.beside(call.size, _decoded, context, call, result, options, applied=True)).document
    check_place(call, new)
    return await write_new(context, call, new, options, sent=result, applied=True)


def _applied(
    context: ServerContext, call: ApiCall, live: Plain | None, applied: Plain, options: WriteOptions
) -> dict[str, Any]:
    return tracker_of(call).apply(
        live, applied, manager=options.manager, now=context.timestamp(), force=bool(options.force)
    )


def _decoded(
    context: ServerContext,
    call: ApiCall,
    result: dict[str, Any],
    options: WriteOptions,
    *,
    applied: bool,
    known: Mapping[str, Any] = _NOTHING,
) -> Incoming:
    """Decode what the patch made of the object. Unknown fields are an error or warnings, by fieldValidation."""
    try:
        found = incoming(call.kind, call.version, result, context.now(), strict=False, known=known)
    except ApiError as error:
        if applied:
            raise
        # Upstream reports a bad result as a bad value of the field `patch`, with the whole object in the message.
        raise invalid_result(encode_document(result).decode(), _cause(error)) from None
    # Kubernetes writes the result of a patch with sorted keys before it reads it.
    warnings = found.warnings if applied else sorted(found.warnings, key=_in_order_of_keys)
    if warnings and options.validation == "Strict":
        why = f"strict decoding error: {', '.join(warnings)}"
        raise invalid_result(encode_document(result).decode(), why)
    if options.validation == "Warn":
        call.warnings.extend(warnings)
    return found


def _in_order_of_keys(warning: str) -> list[tuple[int, str]]:
    """Fields by name and elements by number, level by level."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"[.\[\]]+", warning)]


def _cause(error: ApiError) -> str:
    """The decoder's message, without the sentence that the answer to a POST puts around it."""
    _, _, why = error.status.message.partition(" cannot be handled as a ")
    return why.partition(": ")[2] or error.status.message
