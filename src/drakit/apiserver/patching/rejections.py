"""Why a patch is refused, as the answer that the client gets."""

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
    """422: a JSON patch that does not fit the object. Kubernetes does not say which operation failed."""
    message = "the server rejected our request due to an error in our request"
    return ApiError(status.failure(422, "Invalid", message, StatusDetails()))


def invalid_result(document: str, why: str) -> ApiError:
    """422: what the patch makes of the object is no object of its kind."""
    return ApiError(status.invalid("", "", "", [invalid(Path("patch"), document, why)]))


def too_many_operations(count: int) -> ApiError:
    message = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {count}"
    return ApiError(status.failure(413, "RequestEntityTooLarge", f"Request entity too large: {message}"))


def untyped(subject: str, problems: Sequence[tuple[str, str]]) -> ApiError:
    """400: an applied object that its schema does not know. (Upstream takes this for its own fault and says 500.)"""
    causes = tuple(
        StatusCause(reason="FieldValueInvalid", message=why, field=path.removeprefix(".")) for path, why in problems
    )
    text = ", ".join(f"{path}: {why}" if path else why for path, why in problems)
    message = f"failed to create typed patch object ({subject}): {text}"
    return ApiError(status.failure(400, "BadRequest", message, StatusDetails(causes=causes)))


def conflicting(message: str, causes: Sequence[StatusCause]) -> ApiError:
    """409: others own what the apply would change."""
    return ApiError(status.failure(409, "Conflict", message, StatusDetails(causes=tuple(causes))))
