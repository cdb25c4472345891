"""The plugin PodResizeValidator: refuse to resize a pod that holds node allocatable resources by claims.

In:  updates through `pods/<name>/resize`.
Out: a refusal when the pod's status says that claims hold a part of its node's allocatable resources: a node does not
     count those when it sets limits, so it could not hold the pod to a new size.
"""

from __future__ import annotations

from drakit.api.registry import Kind
from drakit.apiserver.admission.chain import UPDATE, AdmissionPlugin, ObjectChange
from drakit.apiserver.failures import ApiError
from drakit.base import fields, status
from drakit.base.fields import Path

_FIELD = "nodeAllocatableResourceClaimStatuses"
_WHY = "pods with node allocatable resources from resource claims cannot be resized"


class PodResizeValidator(AdmissionPlugin):
    name = "PodResizeValidator"

    def concerns(self, kind: Kind, operation: str, subresource: str) -> bool:
        return kind.kind == "Pod" and operation == UPDATE and subresource == "resize"

    async def validate(self, change: ObjectChange) -> None:
        if change.kind.kind != "Pod" or change.subresource != "resize" or change.operation != UPDATE:
            return
        if (change.document.get("status") or {}).get(_FIELD):
            error = fields.forbidden(Path("status") / _FIELD, _WHY)
            raise ApiError(status.invalid("Pod", "", change.name, [error]))
