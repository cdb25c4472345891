"""Put a changed object in the place of the one that is written.

In:  what a webhook or a policy made of the object, in the version that it saw.
Out: the object in the storage version, with defaults. Fields that only the server sets are as they were.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from drakit.api.objects.plain import Plain
from drakit.apiserver.admission.chain import ObjectChange
from drakit.apiserver.admission.criteria.requests import AdmissionRequest
from drakit.apiserver.requests.bodies import incoming
from drakit.apiserver.strategies.base import restore

_IDENTITY = ("name", "namespace", "uid")
_SERVER_SET = (
    "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields",
    "resourceVersion", "selfLink",
)  # fmt: skip


class IdentityChanged(ValueError):
    """Name, namespace or uid would change."""


def completed(change: ObjectChange, version: str, before: Plain, after: Any, now: datetime, *, strict: bool) -> Plain:
    """Raise ApiError if `after` is no object of the kind, IdentityChanged if it is another one."""
    document: Plain = incoming(change.kind, version, after, now, strict=strict).document
    metadata = document["metadata"]
    if any(metadata.get(name) != before["metadata"].get(name) for name in _IDENTITY):
        raise IdentityChanged("attempted to change the identity of the object")
    # Silently, as upstream: webhooks often send back the object without these.
    for name in _SERVER_SET:
        restore(metadata, before["metadata"], name)
    return document


def replace(request: AdmissionRequest, version: str, document: Plain) -> bool:
    """Make a completed object the one that is written. Return whether it differs."""
    before = request.new_in(version)
    written = request.change.document
    written.clear()
    written.update(document)
    request.changed()
    return request.new_in(version) != before
