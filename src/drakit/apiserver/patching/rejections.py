"""The errors of patches and applies, as upstream words them."""

from __future__ import annotations

from collections.abc import Sequence

from drakit.apiserver.failures import ApiError
from drakit.base import status
from drakit.base.fields import Path, invalid
from drakit.base.status import StatusCause, StatusDetails

MAX_OPERATIONS = 10_000
TOO_DEEP = "exceeded max depth: expected fewer nested lists and objects"


def malformed(message: str) -> ApiError:
    """400: the body is no patch of its type."""
    return ApiError(status.bad_request(message))


def inapplicable() -> ApiError:
    """422: an operation of a JSON patch fails. Kubernetes does not say which one."""
    message = "the server rejected our request due to an error in our request"
    return ApiError(status.failure(422, "Invalid", message, StatusDetails()))


def invalid_result(document: str, why: str) -> ApiError:
    """422: the patched object is not a valid object of its kind."""
    return ApiError(status.invalid("", "", "", [invalid(Path("patch"), document, why)]))


def too_many_operations(count: int) -> ApiError:
    message = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {count}"
    return ApiError(status.failure(413, "RequestEntityTooLarge", f"Request entity too large: {message}"))


def untyped(subject: str, problems: Sequence[tuple[str, str]]) -> ApiError:
    """400: an applied object does not fit its schema. (Upstream answers 500, as if it were its own fault.)"""
    causes = tuple(
        StatusCause(reason="FieldValueInvalid", message=why, field=path.removeprefix(".")) for path, why in problems
    )
    text = ", ".join(f"{path}: {why}" if path else why for path, why in problems)
    message = f"failed to create typed patch object ({subject}): {text}"
    return ApiError(status.failure(400, "BadRequest", message, StatusDetails(causes=causes)))


def conflicting(message: str, causes: Sequence[StatusCause]) -> ApiError:
    """409: the apply would change fields of other managers."""
    return ApiError(status.failure(409, "Conflict", message, StatusDetails(causes=tuple(causes))))
