"""Bodies of patches, and what they require of the object that they change.

In:  a patch, and the object that it was made for.
Out: the patch with that object's uid and resourceVersion in it: applied to another object of the same name, or to a
     version that has moved on, it is a conflict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from drakit.api.objects.meta import ObjectMeta
from drakit.base.errors import UsageError

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"

Patch = Mapping[str, Any] | Sequence[Mapping[str, Any]]


def requiring(patch: Patch, metadata: ObjectMeta, *, versioned: bool) -> Patch:
    """The patch, bound to that object by its uid. With `versioned`, also to that resourceVersion."""
    required = {"uid": metadata.uid}
    if versioned:
        required["resourceVersion"] = metadata.resource_version
    if not all(required.values()):
        raise UsageError(f"patch of {metadata.name!r}: the object comes from no server: it has no uid or version")
    if isinstance(patch, Mapping):
        return {**patch, "metadata": {**(patch.get("metadata") or {}), **required}}
    return [{"op": "replace", "path": f"/metadata/{name}", "value": value} for name, value in required.items()] + list(
        patch
    )


def is_bound(patch: Patch) -> bool:
    """Whether a patch names the uid and the version of its object."""
    if isinstance(patch, Mapping):
        metadata = patch.get("metadata") or {}
        return bool(metadata.get("uid") and metadata.get("resourceVersion"))
    touched = {step.get("path") for step in patch if step.get("op") in ("replace", "test", "add")}
    return {"/metadata/uid", "/metadata/resourceVersion"} <= touched


def encode_patch(patch: Patch) -> bytes:
    return msgspec.json.encode(patch)
