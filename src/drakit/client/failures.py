"""What a server refuses, as exceptions named by what the caller does about them.

Answered                    the server said no: `status` is what it said
  Retryable
    Conflict                resourceVersion or uid moved: read again first
    Expired                 410: the version is gone from the server's history: list again
    FutureVersion           the server has not seen that version yet (or has forgotten everything): list again
    TooManyRequests         429: wait `retry_after` seconds; nothing was done
    ServerUnavailable       503, 500, a broken gateway
    ServerTimeout           504: it may have been done, or not
    Unauthorized            401: the credentials are not, or no longer, good; they may be renewed
  Terminal
    NotFound                there is no such object
    AlreadyExists           there is one already
    Forbidden               this user may not, or a policy or quota says no
    Invalid                 the object breaks rules; `causes` has every one
    Rejected                the request makes no sense to the server (400, 406, 413, 415)
    NotServed               the server has no such kind, version or method
ConnectionFailed            (Unavailable) no answer came; `sent` says whether the server may have seen the request
"""

from __future__ import annotations

from typing import Any

import msgspec

from drakit.api.exchange import Content, StatusContent
from drakit.base import errors
from drakit.base.fields import ErrorKind, FieldError, Path
from drakit.base.status import Status, StatusCause, failure

_KINDS = {kind.reason: kind for kind in reversed(ErrorKind)}
_REASONS = {
    400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 405: "MethodNotAllowed",
    406: "NotAcceptable", 409: "Conflict", 410: "Expired", 413: "RequestEntityTooLarge", 415: "UnsupportedMediaType",
    422: "Invalid", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout",
}  # fmt: skip
_TOO_LARGE = "ResourceVersionTooLarge"
_BRIEF = 500
_USUAL = {"kind": "", "apiVersion": "v1", "metadata": {}, "status": "Failure"}


class Answered(errors.DrakitError):
    """The server's answer is a failure."""

    def __init__(self, status: Status, *, retry_after: float | None = None) -> None:
        self.status = status
        details = status.details
        self.retry_after = retry_after or (float(details.retry_after_seconds) if details else 0.0) or None
        Exception.__init__(self, status.message or status.reason or f"the server answered {status.code}")

    @property
    def causes(self) -> tuple[StatusCause, ...]:
        return self.status.details.causes if self.status.details else ()


class Conflict(Answered, errors.Conflict):
    """Somebody else wrote first."""


class Expired(Answered, errors.Retryable):
    """The server no longer has what happened since that version."""


class FutureVersion(Answered, errors.Retryable):
    """The server has not come to that version."""


class TooManyRequests(Answered, errors.Unavailable):
    """The server did nothing, and wants to be asked later."""


class ServerUnavailable(Answered, errors.Unavailable):
    """The server cannot do it right now."""


class ServerTimeout(Answered, errors.DeadlineExceeded):
    """The server gave up waiting."""


class Unauthorized(Answered, errors.Retryable):
    """The server does not know who is asking."""


class NotFound(Answered, errors.NotFound):
    """There is no such object."""


class AlreadyExists(Answered, errors.AlreadyExists):
    """The name is taken."""


class Forbidden(Answered, errors.Forbidden):
    """The user may not, or something in the cluster forbids it."""


class Invalid(Answered, errors.InvalidObject):
    """The object breaks rules: `errors` has them with their paths."""

    def __init__(self, status: Status, *, retry_after: float | None = None) -> None:
        Answered.__init__(self, status, retry_after=retry_after)
        self.kind = status.details.kind if status.details else ""
        self.name = status.details.name if status.details else ""
        self.errors = tuple(map(_field_error, self.causes))


class Rejected(Answered, errors.Terminal):
    """The server cannot make sense of the request."""


class NotServed(Answered, errors.Unsupported):
    """The server does not serve this."""


class ConnectionFailed(errors.Unavailable):
    """No answer, or half of one. `sent`: the server may have seen the request, and done it."""

    def __init__(self, message: str, *, sent: bool) -> None:
        self.sent = sent
        super().__init__(message)


class RequestTimeout(errors.DeadlineExceeded):
    """No answer within the time that a request may take; the server may have done it."""


_BY_REASON: dict[str, type[Answered]] = {
    "NotFound": NotFound,
    "AlreadyExists": AlreadyExists,
    "Conflict": Conflict,
    "Forbidden": Forbidden,
    "Unauthorized": Unauthorized,
    "Invalid": Invalid,
    "Expired": Expired,
    "Gone": Expired,
    "TooManyRequests": TooManyRequests,
    "Timeout": ServerTimeout,
    "ServerTimeout": ServerTimeout,
    "MethodNotAllowed": NotServed,
}


def raise_for(code: int, content: Content, *, retry_after: float | None = None) -> None:
    """Raise what a failed answer means; return when it is none."""
    if code >= 400:
        raise failed(read_status(code, content), retry_after=retry_after)


def failed(status: Status, *, retry_after: float | None = None) -> Answered:
    """The exception of a Status: its reason counts, else its code."""
    return _class_of(status)(status, retry_after=retry_after)


def read_status(code: int, content: Content) -> Status:
    """The Status in an answer. An answer without one, such as a proxy's page, is described by a Status made here."""
    if isinstance(content, StatusContent):
        return content.status
    return decode_status(content.encode(), code)


def decode_status(data: bytes, code: int = 0) -> Status:
    try:
        status = _status_in(data)
    except msgspec.DecodeError:
        text = data.decode(errors="replace").strip()
        return failure(code, _REASONS.get(code, "Unknown"), text[:_BRIEF] or f"the server answered {code}")
    return status if status.code else msgspec.structs.replace(status, code=code)


def _status_in(data: bytes) -> Status:
    """A Status as any server may write it: with nulls, and without what says nothing."""
    told = _without_nulls(msgspec.json.decode(data, type=dict[str, Any]))
    told["details"] = _without_nulls(told["details"]) if isinstance(told.get("details"), dict) else None
    return msgspec.convert({**_USUAL, **told}, Status)


def _without_nulls(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if value is not None}


def _class_of(status: Status) -> type[Answered]:
    details = status.details
    if details is not None and any(cause.reason == _TOO_LARGE for cause in details.causes):
        return FutureVersion
    reason = status.reason or _REASONS.get(status.code, "")
    if reason == "NotFound" and not (details and details.name):
        return NotServed
    if reason in _BY_REASON:
        return _BY_REASON[reason]
    return Rejected if 400 <= status.code < 500 else ServerUnavailable


def _field_error(cause: StatusCause) -> FieldError:
    """A cause as the field error that it was; its text has the value already, as text."""
    kind = _KINDS.get(cause.reason, ErrorKind.INVALID)
    detail: Any = cause.message.removeprefix(kind.words).removeprefix(": ")
    return FieldError(kind, Path("" if cause.field == "<nil>" else cause.field), detail=detail)
