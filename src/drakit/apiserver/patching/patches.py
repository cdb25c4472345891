"""Apply a JSON patch, merge patch or strategic merge patch to an object.

In:  the body of the request, and the object in the version of the request.
Out: the patched object. The caller decodes it: fields may be unknown and values of the wrong type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drakit.apiserver.failures import unsupported_media_type
from drakit.apiserver.patching.atoms import Atom
from drakit.apiserver.patching.bodies import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, PatchBody
from drakit.apiserver.patching.jsonpatches import apply_operations, merge_patch
from drakit.apiserver.patching.rejections import TOO_DEEP, inapplicable, malformed
from drakit.apiserver.patching.strategic import ListOfLists, StrategicError, strategic_merge


def apply_patch(body: PatchBody, live: Mapping[str, Any], *, schema: Atom) -> dict[str, Any]:
    """The patched object; `live` is not changed. Raises ApiError."""
    try:
        return _apply(body, live, schema)
    except RecursionError:
        raise malformed(TOO_DEEP) from None


def _apply(body: PatchBody, live: Mapping[str, Any], schema: Atom) -> dict[str, Any]:
    if body.content_type == JSON_PATCH:
        return apply_operations(live, body.data)
    if body.content_type == MERGE_PATCH:
        merged: dict[str, Any] = merge_patch(live, body.data)
        return merged
    if body.content_type == STRATEGIC_MERGE_PATCH:
        return _strategic(schema, live, body.data)
    raise unsupported_media_type()


def _strategic(schema: Atom, live: Mapping[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    try:
        return strategic_merge(schema, live, patch)
    except ListOfLists:
        raise inapplicable() from None
    except StrategicError as error:
        raise malformed(str(error)) from None
