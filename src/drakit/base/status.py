"""The API's answer when it is not an object: `kind: Status`, v1.

In:  an error of any room.
Out: code, reason, message and details in the words that clients know.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import msgspec

from drakit.base.errors import summary
from drakit.base.fields import FieldError
from drakit.base.structs import Model

MOST_ERRORS = 1000
"""Of one answer. An object may have 100,000 wrong fields, and nobody reads so many messages."""


class StatusCause(Model):
    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(Model):
    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: int = 0


class ListMeta(Model):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")
    remaining_item_count: int | None = None


class Status(Model, tag_field="kind", tag="Status"):
    """Invariant: `code` is the HTTP code that goes with it. Fields without a default are always on the wire."""

    api_version: str
    metadata: ListMeta
    status: str
    message: str = ""
    reason: str = ""
    details: StatusDetails | None = None
    code: int = 0


def qualified(resource: str, group: str) -> str:
    """`resourceclaims.resource.k8s.io`, or the bare name for the core group."""
    return f"{resource}.{group}" if group else resource


def failure(code: int, reason: str, message: str, details: StatusDetails | None = None) -> Status:
    return Status(
        api_version="v1",
        metadata=ListMeta(),
        status="Failure",
        code=code,
        reason=reason,
        message=message,
        details=details,
    )


def not_found(resource: str, group: str, name: str) -> Status:
    message = f'{qualified(resource, group)} "{name}" not found'
    return failure(404, "NotFound", message, StatusDetails(name=name, group=group, kind=resource))


def already_exists(resource: str, group: str, name: str) -> Status:
    message = f'{qualified(resource, group)} "{name}" already exists'
    return failure(409, "AlreadyExists", message, StatusDetails(name=name, group=group, kind=resource))


def conflict(resource: str, group: str, name: str, why: str) -> Status:
    message = f'Operation cannot be fulfilled on {qualified(resource, group)} "{name}": {why}'
    return failure(409, "Conflict", message, StatusDetails(name=name, group=group, kind=resource))


def forbidden(resource: str, group: str, name: str, why: str) -> Status:
    subject = qualified(resource, group) + (f' "{name}"' if name else "")
    details = StatusDetails(name=name, group=group, kind=resource)
    return failure(403, "Forbidden", f"{subject} is forbidden: {why}", details)


def invalid(kind: str, group: str, name: str, errors: Iterable[FieldError]) -> Status:
    """All field errors in one answer, in the order in which they were found, one cause each; the first thousand."""
    ordered = tuple(islice(errors, MOST_ERRORS))
    causes = tuple(
        StatusCause(reason=error.kind.reason, message=error.body, field=str(error.path) or "<nil>") for error in ordered
    )
    message = f'{qualified(kind, group)} "{name}" is invalid'
    if ordered:
        message += ": " + summary([str(error) for error in ordered])
    return failure(422, "Invalid", message, StatusDetails(name=name, group=group, kind=kind, causes=causes))


def bad_request(message: str) -> Status:
    return failure(400, "BadRequest", message)


def expired(message: str) -> Status:
    return failure(410, "Expired", message)


def timeout(message: str, retry_after: int) -> Status:
    details = StatusDetails(retry_after_seconds=retry_after)
    return failure(504, "Timeout", f"Timeout: {message}", details)
