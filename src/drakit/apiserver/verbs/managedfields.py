"""Keep `metadata.managedFields` over creates, updates and plain patches.

In:  the object before and after a write, and the field manager.
Out: the new object with its managedFields.
"""

from __future__ import annotations

from functools import cache

from drakit.api.exchange import Request
from drakit.api.objects.partial import Partial
from drakit.api.objects.plain import Plain
from drakit.apiserver.admission.chain import ObjectChange
from drakit.apiserver.patching import FieldTracker, manager_name
from drakit.apiserver.patching.entries import with_entries, write_owners
from drakit.apiserver.requests.options import WriteOptions
from drakit.apiserver.storage.objects import Precomputed, StoredObject, convert
from drakit.apiserver.verbs.context import ApiCall

UNKNOWN = "unknown"


def manager_of(request: Request, options: WriteOptions) -> str:
    """The field manager that the client names, else the beginning of its User-Agent."""
    return manager_name(options.manager, request.headers.get("user-agent", "")) or UNKNOWN


@cache
def tracker(group_version: str, kind: str, subresource: str) -> FieldTracker:
    return FieldTracker(group_version, kind, subresource=subresource)


def tracker_of(call: ApiCall) -> FieldTracker:
    return tracker(call.target.group_version, call.kind.kind, call.subresource)


def track(call: ApiCall, old: StoredObject | None, new: Plain, manager: str, now: str) -> None:
    """Set managedFields of a new or changed object, before admission changes it.

    managedFields that the client sent are believed.
    """
    before, known = (old.document_in(call.version), old.owners) if old is not None else (None, {})
    tracker = tracker_of(call)
    owners = with_entries(tracker.owners_after(before, known, in_version(call, new), manager=manager, now=now))
    # The same list object goes into the document and into the call: `precomputed_of` sees whether it was replaced.
    entries = write_owners(owners)
    if entries:
        new["metadata"]["managedFields"] = entries
    else:
        new["metadata"].pop("managedFields", None)
    call.managed_fields = entries, owners


def precomputed_of(call: ApiCall, change: ObjectChange) -> Precomputed:
    """What is known about an object after validation. The owners count only if no plugin changed managedFields."""
    typed = change.typed.view if isinstance(change.typed, Partial) else change.typed
    entries, owners = call.managed_fields or (None, None)
    untouched = entries is not None and entries == (change.document["metadata"].get("managedFields") or [])
    return Precomputed(typed, owners if untouched else None)


def in_version(call: ApiCall, document: Plain) -> Plain:
    """The object in the version of the request: field managers own fields of that version."""
    return document if call.version == call.kind.internal else convert(call.kind, document, call.version)
