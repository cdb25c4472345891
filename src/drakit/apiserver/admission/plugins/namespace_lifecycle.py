"""The plugin NamespaceLifecycle.

In:  creations in a namespace, deletions of namespaces.
Out: refusals: of creations in a namespace that does not exist or is being deleted, and of deleting system namespaces.
"""

from __future__ import annotations

from drakit.api.registry import Kind
from drakit.apiserver.admission.chain import CREATE, DELETE, AdmissionPlugin, ObjectChange
from drakit.apiserver.failures import ApiError
from drakit.apiserver.kinds.served import known_kind
from drakit.apiserver.storage.objects import StoredObject
from drakit.apiserver.storage.objectstore import ObjectStore, not_found
from drakit.base import status
from drakit.base.status import StatusCause, StatusDetails

IMMORTAL = ("default", "kube-system", "kube-public")
_NAMESPACE = known_kind("v1", "Namespace")


class NamespaceLifecycle(AdmissionPlugin):
    """Objects of a terminating namespace may still be changed and deleted: else it would never be empty."""

    name = "NamespaceLifecycle"

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def concerns(self, kind: Kind, operation: str, subresource: str) -> bool:  # noqa: ARG002
        return kind is _NAMESPACE or (operation == CREATE and kind.namespaced)

    async def admit(self, change: ObjectChange) -> None:
        if change.kind is _NAMESPACE:
            if change.operation == DELETE and change.name in IMMORTAL:
                raise change.forbid("this namespace may not be deleted")
            return
        if change.operation != CREATE or not change.kind.namespaced:
            return
        namespace = await self._objects.find(_NAMESPACE, "", change.namespace)
        if namespace is None:
            raise not_found(_NAMESPACE, change.namespace)
        if _ends(namespace):
            raise _terminating(change)


def _ends(namespace: StoredObject) -> bool:
    phase = (namespace.document.get("status") or {}).get("phase")
    return phase == "Terminating" or bool(namespace.metadata.get("deletionTimestamp"))


def _terminating(change: ObjectChange) -> ApiError:
    why = f"unable to create new content in namespace {change.namespace} because it is being terminated"
    answer = status.forbidden(change.kind.plural, change.kind.group, change.name, why)
    cause = StatusCause(
        reason="NamespaceTerminating",
        message=f"namespace {change.namespace} is being terminated",
        field="metadata.namespace",
    )
    details = StatusDetails(name=change.name, group=change.kind.group, kind=change.kind.plural, causes=(cause,))
    return ApiError(status.failure(answer.code, answer.reason, answer.message, details))
