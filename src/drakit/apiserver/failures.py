"""Errors of handlers, and the Status that the client gets.

In:  errors of this room, of the store, of decoding and of validation.
Out: one Status, with the code, reason and message that Kubernetes clients know.

ApiError                a Status, in some cases with headers
PageNotFound            a path outside of the API: plain text
Disconnected            the client went away in the middle of its request: nobody is left to answer
"""

from __future__ import annotations

from drakit.base import errors, status
from drakit.base.status import Status, StatusCause, StatusDetails
from drakit.store import Compacted, FutureRevision, WriteInDoubt

RETRY_SECONDS = 1


class ApiError(errors.DrakitError):
    """The request ends with this Status."""

    def __init__(self, answer: Status, *, headers: tuple[tuple[str, str], ...] = ()) -> None:
        self.status = answer
        self.headers = headers
        super().__init__(answer.message)


class PageNotFound(errors.DrakitError):
    """A path outside of every API group. The response is plain text, as upstream."""


class Disconnected(Exception):
    """The client disconnected in the middle of its request."""


def bad_request(message: str) -> ApiError:
    return ApiError(status.bad_request(message))


def unauthorized() -> ApiError:
    answer = status.failure(401, "Unauthorized", "Unauthorized")
    return ApiError(answer, headers=(("www-authenticate", 'Bearer realm="drakit"'),))


def resource_not_found() -> ApiError:
    message = "the server could not find the requested resource"
    return ApiError(status.failure(404, "NotFound", message, StatusDetails()))


def method_not_allowed() -> ApiError:
    message = "the server does not allow this method on the requested resource"
    return ApiError(status.failure(405, "MethodNotAllowed", message, StatusDetails()))


def not_acceptable(available: str) -> ApiError:
    message = f"406: Not Acceptable\n\nAvailable representations: {available}"
    return ApiError(status.failure(406, "NotAcceptable", message, StatusDetails()))


def unsupported_media_type() -> ApiError:
    return ApiError(status.failure(415, "UnsupportedMediaType", "415: Unsupported Media Type", StatusDetails()))


def unknown_body_format() -> ApiError:
    """A body in a form that no kind is read from. A patch of an unknown type gets the other message, as upstream."""
    accepted = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    message = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
    return ApiError(status.failure(415, "UnsupportedMediaType", message))


def too_large(limit: int) -> ApiError:
    message = f"Request entity too large: limit is {limit}"
    return ApiError(status.failure(413, "RequestEntityTooLarge", message))


def too_many_elements(limit: int) -> ApiError:
    message = f"Request entity too large: lists and objects have more than {limit} elements"
    return ApiError(status.failure(413, "RequestEntityTooLarge", message))


def object_too_large(kind: str, name: str, size: int, limit: int) -> ApiError:
    message = f'Request entity too large: {kind} "{name}" would have {size} bytes, the limit is {limit}'
    return ApiError(status.failure(413, "RequestEntityTooLarge", message))


def url_too_long(limit: int) -> ApiError:
    return ApiError(status.failure(414, "RequestURITooLong", f"the URL of the request has more than {limit} bytes"))


def head_too_large(what: str) -> ApiError:
    return ApiError(status.failure(431, "RequestHeaderFieldsTooLarge", f"the head of the request has {what}"))


def too_many_requests() -> ApiError:
    details = StatusDetails(retry_after_seconds=RETRY_SECONDS)
    answer = status.failure(429, "TooManyRequests", "Too many requests, please try again later.", details)
    return ApiError(answer, headers=(("retry-after", str(RETRY_SECONDS)),))


def request_timeout() -> ApiError:
    return ApiError(status.timeout("request did not complete within the allotted timeout", 0))


def internal(message: str) -> ApiError:
    details = StatusDetails(causes=(StatusCause(message=message),))
    return ApiError(status.failure(500, "InternalError", f"Internal error occurred: {message}", details))


def too_old(revision: int, compacted: int) -> ApiError:
    return ApiError(status.expired(f"too old resource version: {revision} ({compacted})"))


def too_new(revision: int, current: int) -> ApiError:
    message = f"Timeout: Too large resource version: {revision}, current: {current}"
    cause = StatusCause(reason="ResourceVersionTooLarge", message="Too large resource version")
    details = StatusDetails(causes=(cause,), retry_after_seconds=RETRY_SECONDS)
    return ApiError(status.failure(504, "Timeout", message, details))


def unavailable(message: str) -> ApiError:
    details = StatusDetails(retry_after_seconds=RETRY_SECONDS)
    answer = status.failure(503, "ServiceUnavailable", message, details)
    return ApiError(answer, headers=(("retry-after", str(RETRY_SECONDS)),))


def translate(error: Exception) -> ApiError:
    """The ApiError for any error that a handler raised."""
    match error:
        case ApiError():
            return error
        case Compacted():
            return too_old(error.revision, error.compacted)
        case FutureRevision():
            return too_new(error.revision, error.current)
        case errors.DecodeError() | errors.UsageError():
            return bad_request(str(error))
        # Decoders and walkers recurse: a body of a thousand nested lists is the client's fault.
        case RecursionError():
            return bad_request("exceeded max depth: expected fewer nested lists and objects")
        case WriteInDoubt():
            # No word of coming back: the client must look first whether its write was done.
            return ApiError(status.failure(504, "Timeout", str(error), StatusDetails()))
        case errors.Retryable():
            return unavailable(str(error))
        case _:
            return internal(str(error) or type(error).__name__)
