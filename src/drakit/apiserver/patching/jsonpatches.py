"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386)."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

import jsonpatch
import jsonpointer
import msgspec

from drakit.apiserver.failures import ApiError
from drakit.apiserver.patching.rejections import (
    MAX_OPERATIONS,
    inapplicable,
    invalid_result,
    too_many_operations,
)

# Bytes that all `copy` operations together may add: each one could double the object.
_MAX_COPIED = 3 * 1024 * 1024


_OPERATIONS = ("add", "copy", "move", "remove", "replace", "test")


class OperationFailed(ApiError):
    """An operation does not apply. Clients are not told which one, as upstream; `why` is for authors of policies."""

    def __init__(self, operation: Mapping[str, Any]) -> None:
        super().__init__(inapplicable().status)
        kind, path = operation.get("op"), operation.get("path")
        known = kind in _OPERATIONS
        self.why = f"{kind} operation does not apply: {path}" if known else f"Unexpected kind: {kind}"


class PatchTestFailed(OperationFailed):
    """A `test` operation did not find its value."""


def apply_operations(live: Mapping[str, Any], operations: list[Any]) -> dict[str, Any]:
    """Apply operations in order. If one fails, none counts."""
    if len(operations) > MAX_OPERATIONS:
        raise too_many_operations(len(operations))
    result: Any = copy.deepcopy(dict(live))
    copied = 0
    for operation in operations:
        try:
            # Measured before the copy is made: a few dozen copies of copies would fill the memory.
            if operation.get("op") == "copy":
                copied += len(msgspec.json.encode(jsonpointer.resolve_pointer(result, operation["from"])))
            if copied > _MAX_COPIED:
                raise inapplicable()
            result = jsonpatch.JsonPatch([_known(operation)]).apply(result, in_place=True)
        except jsonpatch.JsonPatchTestFailed:
            raise PatchTestFailed(operation) from None
        except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError, LookupError, ValueError):
            raise OperationFailed(operation) from None
    if not isinstance(result, dict):
        raise invalid_result(json.dumps(result), "json: cannot unmarshal the patched document into an object")
    return result


def _known(operation: Mapping[str, Any]) -> dict[str, Any]:
    """Give an add or replace without a value the value null: as Kubernetes reads it."""
    given = dict(operation)
    if given.get("op") in ("add", "replace") and "value" not in given:
        given["value"] = None
    return given


def merge_patch(target: Any, patch: Any) -> Any:
    """Lay the patch over the target: null removes, objects merge, other values replace.

    Nulls in objects of a list go as well, though there is nothing that they could remove: as Kubernetes does it.
    """
    if isinstance(patch, list):
        return [merge_patch(None, each) for each in patch]
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result
