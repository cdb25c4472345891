"""AdmissionReview: what a webhook gets, and what it answers.

In:  an AdmissionRequest; the bytes of the response.
Out: the review to send; the checked response.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from drakit.api.objects.plain import from_plain
from drakit.apiserver.admission.criteria.requests import AdmissionRequest
from drakit.apiserver.failures import ApiError
from drakit.apiserver.storage.objects import encode_document
from drakit.base import status
from drakit.base.errors import DecodeError
from drakit.base.status import StatusDetails
from drakit.base.structs import Model

VERSIONS = ("v1", "v1beta1")
_GROUP = "admission.k8s.io"
_KIND = "AdmissionReview"
_LOWEST_FAILURE, _HIGHEST_FAILURE = 400, 599


class ReviewInvalid(ValueError):
    """The response is no AdmissionReview, or not the one to this request."""


class ReviewStatus(Model):
    """The Status with which a webhook refuses; only the fields that are used."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: StatusDetails | None = None


class ReviewResponse(Model):
    uid: str = ""
    allowed: bool = False
    status: ReviewStatus | None = None
    patch: str = ""
    patch_type: str | None = None
    audit_annotations: Mapping[str, str] = {}
    warnings: Sequence[str] = ()

    def operations(self) -> list[Any]:
        """The operations of the JSON patch; ReviewInvalid if it cannot be decoded."""
        if not self.patch:
            return []
        if self.patch_type not in (None, "JSONPatch"):
            raise ReviewInvalid(f'unsupported patch type "{self.patch_type}"')
        try:
            found = msgspec.json.decode(base64.b64decode(self.patch, validate=True))
        except (ValueError, RecursionError) as error:  # ValueError: what is no base64, and what is no JSON
            raise ReviewInvalid(f"received undecodable patch in webhook response: {error}") from None
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            raise ReviewInvalid("received undecodable patch in webhook response: expected a list of operations")
        return found


class _Review(Model):
    kind: str = ""
    api_version: str = ""
    response: ReviewResponse | None = None


def chosen_version(accepted: Sequence[str]) -> str:
    """The first of the accepted versions that this server supports."""
    for version in accepted:
        if version in VERSIONS:
            return version
    raise ReviewInvalid(f"webhook does not accept known AdmissionReview versions ({', '.join(VERSIONS)})")


def question(request: AdmissionRequest, version: str, review_version: str, uid: str) -> bytes:
    review = {
        "kind": _KIND,
        "apiVersion": f"{_GROUP}/{review_version}",
        "request": {
            "uid": uid,
            **request.as_review(version),
            "object": request.new_in(version),
            "oldObject": request.old_in(version),
        },
    }
    return encode_document(review)


def read_answer(data: bytes, review_version: str, uid: str, *, mutating: bool) -> ReviewResponse:
    """Decode a response. Raise ReviewInvalid if it is no review, or not the one to this request."""
    try:
        review = from_plain(_Review, msgspec.json.decode(data))
    except (msgspec.DecodeError, DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ReviewInvalid(f"couldn't read the answer: {error}") from None
    answer = review.response
    if answer is None:
        raise ReviewInvalid("webhook response was absent")
    # v1beta1 had fewer rules, and webhooks that rely on that.
    if review_version == "v1":
        _check(review, answer, uid)
        _check_patch(answer, mutating=mutating)
    return answer


def _check(review: _Review, answer: ReviewResponse, uid: str) -> None:
    if answer.uid != uid:
        raise ReviewInvalid(f'expected response.uid="{uid}", got "{answer.uid}"')
    if (review.api_version, review.kind) != (f"{_GROUP}/v1", _KIND):
        expected, found = f"{_GROUP}/v1, Kind={_KIND}", f"{review.api_version}, Kind={review.kind}"
        raise ReviewInvalid(f"expected webhook response of {expected}, got {found}")


def _check_patch(answer: ReviewResponse, *, mutating: bool) -> None:
    if not mutating:
        if answer.patch:
            raise ReviewInvalid("validating webhook may not return response.patch")
        if answer.patch_type is not None:
            raise ReviewInvalid("validating webhook may not return response.patchType")
    elif answer.patch and answer.patch_type is None:
        raise ReviewInvalid("webhook returned response.patch but not response.patchType")
    elif answer.patch_type is not None and not answer.patch:
        raise ReviewInvalid("webhook returned response.patchType but not response.patch")


def refusal(webhook: str, result: ReviewStatus | None) -> ApiError:
    """The error of a refused request. A code of the webhook that is no error code becomes 400."""
    found = result or ReviewStatus()
    denied = f'admission webhook "{webhook}" denied the request'
    why = found.message or found.reason
    message = f"{denied}: {why}" if why else f"{denied} without explanation"
    code = found.code if _LOWEST_FAILURE <= found.code <= _HIGHEST_FAILURE else _LOWEST_FAILURE
    return ApiError(status.failure(code, found.reason, message, found.details))
