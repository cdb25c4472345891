"""The plugin RuntimeClass: what running a pod in another way takes, and where it can run.

In:  pods that name a runtime class.
Out: pods with its overhead, node selector and tolerations; refusals of unknown classes and of another overhead.
"""

from __future__ import annotations

from drakit.api.objects.plain import Plain
from drakit.api.registry import Kind
from drakit.apiserver.admission.chain import CREATE, AdmissionPlugin, ObjectChange
from drakit.apiserver.kinds.served import known_kind
from drakit.apiserver.storage.objectstore import ObjectStore
from drakit.base.quantity import Quantity

_CLASS = known_kind("node.k8s.io/v1", "RuntimeClass")
_POD = known_kind("v1", "Pod")


class RuntimeClasses(AdmissionPlugin):
    name = "RuntimeClass"

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def concerns(self, kind: Kind, operation: str, subresource: str) -> bool:
        return kind is _POD and operation == CREATE and not subresource

    def passes_over(self, change: ObjectChange) -> bool:
        spec = change.document["spec"]
        return not spec.get("runtimeClassName") and not spec.get("overhead")

    async def admit(self, change: ObjectChange) -> None:
        found = await self._class(change)
        if found is None:
            return
        spec = change.own("spec")
        fixed = (found.get("overhead") or {}).get("podFixed")
        if fixed:
            if spec.get("overhead") and not _same(spec["overhead"], fixed):
                raise change.forbid("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
            spec["overhead"] = dict(fixed)
        _place(change, spec, found.get("scheduling") or {})

    async def validate(self, change: ObjectChange) -> None:
        spec = change.document["spec"]
        given = spec.get("overhead")
        found = await self._class(change)
        if given and not (found and (found.get("overhead") or {}).get("podFixed")):
            raise change.forbid("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")

    async def _class(self, change: ObjectChange) -> Plain | None:
        name = change.document["spec"].get("runtimeClassName")
        if not name:
            return None
        found = await self._objects.find(_CLASS, "", name)
        if found is None:
            raise change.forbid(f'pod rejected: RuntimeClass "{name}" not found')
        return found.document


def _same(one: Plain, other: Plain) -> bool:
    return one.keys() == other.keys() and all(
        Quantity.parse(amount).nanos == Quantity.parse(other[name]).nanos for name, amount in one.items()
    )


def _place(change: ObjectChange, spec: Plain, scheduling: Plain) -> None:
    wanted, given = scheduling.get("nodeSelector") or {}, spec.get("nodeSelector") or {}
    for key in wanted.keys() & given.keys():
        if wanted[key] != given[key]:
            raise change.forbid(
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {wanted[key]}; "
                f"pod.spec.nodeSelector[{key}] = {given[key]}"
            )
    if wanted:
        spec["nodeSelector"] = {**given, **wanted}
    tolerated = list(spec.get("tolerations") or ())
    added = [each for each in scheduling.get("tolerations") or () if each not in tolerated]
    if added:
        spec["tolerations"] = [*tolerated, *added]
