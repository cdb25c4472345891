"""What the expressions of a policy see of a request.

In:  an AdmissionRequest.
Out: `object`, `oldObject`, `request`, `namespaceObject` and `authorizer`, as CEL values.
"""

from __future__ import annotations

from drakit.apiserver.admission.criteria.authorizing import authorizer_values
from drakit.apiserver.admission.criteria.expressions import as_value, namespace_value
from drakit.apiserver.admission.criteria.requests import NAMESPACE, AdmissionRequest
from drakit.apiserver.auth.authorization import Authorizer
from drakit.apiserver.storage.objectstore import ObjectStore


async def request_values(
    objects: ObjectStore, authorizer: Authorizer, request: AdmissionRequest, version: str
) -> dict[str, object]:
    inside = request.namespace if request.change.kind is not NAMESPACE else ""
    namespace = await objects.find(NAMESPACE, "", inside) if inside else None
    return {
        "object": as_value(request.new_in(version)),
        "oldObject": as_value(request.old_in(version)),
        "request": as_value(request.as_review(version)),
        "namespaceObject": namespace_value(namespace.document if namespace else None),
        **authorizer_values(authorizer, request.change),
    }
