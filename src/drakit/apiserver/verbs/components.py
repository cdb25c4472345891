"""The state of the control plane as ComponentStatuses: made when somebody asks, never stored.

In:  the store, and the leases of scheduler and controller manager.
Out: documents. A part that holds no lease may still run, in this process or without leader election: it is unknown.
"""

from __future__ import annotations

from typing import Any

from drakit.api.registry import Kind
from drakit.api.text.times import parse_time
from drakit.apiserver.failures import ApiError
from drakit.apiserver.kinds.served import known_kind
from drakit.apiserver.storage.objects import StoredObject, storage_form
from drakit.apiserver.storage.objectstore import key_of
from drakit.apiserver.verbs.context import ServerContext
from drakit.apiserver.verbs.read import ListContent
from drakit.base import status
from drakit.base.status import ListMeta

COMPONENT_STATUS = known_kind("v1", "ComponentStatus")
_LEASES = {"controller-manager": "kube-controller-manager", "scheduler": "kube-scheduler"}
_STORE = "etcd-0"
"""The name under which clients look for the store."""


async def component(context: ServerContext, name: str) -> StoredObject:
    if name == _STORE:
        return await _store(context)
    if name not in _LEASES:
        raise ApiError(status.not_found(COMPONENT_STATUS.plural, "", name))
    return await _leading(context, name)


async def components(context: ServerContext) -> ListContent:
    found = [await component(context, name) for name in (*_LEASES, _STORE)]
    return ListContent(COMPONENT_STATUS, "v1", found, ListMeta())


async def _store(context: ServerContext) -> StoredObject:
    try:
        await context.objects.store.revision()
    except Exception as error:
        return _document(_STORE, "False", str(error))
    return _document(_STORE, "True", "ok")


async def _leading(context: ServerContext, name: str) -> StoredObject:
    lease = await context.objects.find(known_kind("coordination.k8s.io/v1", "Lease"), "kube-system", _LEASES[name])
    spec: dict[str, Any] = (lease.document.get("spec") or {}) if lease is not None else {}
    if not spec.get("holderIdentity") or not spec.get("renewTime"):
        return _document(name, "Unknown", f"nobody holds the lease kube-system/{_LEASES[name]}")
    age = (context.now() - parse_time(spec["renewTime"])).total_seconds()
    if age > spec.get("leaseDurationSeconds", 0):
        return _document(name, "False", f"{spec['holderIdentity']} has not renewed its lease for {age:.0f} s")
    return _document(name, "True", "ok")


def _document(name: str, healthy: str, message: str) -> StoredObject:
    kind: Kind = COMPONENT_STATUS
    condition = {"type": "Healthy", "status": healthy, "message": message}
    document = {"metadata": {"name": name}, "conditions": [condition]}
    return StoredObject(kind, key_of(kind, "", name), storage_form(kind, document), 0)
