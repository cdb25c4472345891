"""The plugin Priority: resolve the priority class of a pod.

In:  pods, and priority classes themselves.
Out: pods with priority and preemption policy. Refusals of unknown classes, of numbers that differ from the class, and
     of a second default class.
"""

from __future__ import annotations

from drakit.api.objects.plain import Plain
from drakit.api.registry import Kind
from drakit.apiserver.admission.chain import CREATE, DELETE, AdmissionPlugin, ObjectChange
from drakit.apiserver.admission.criteria.catalogues import Catalogue
from drakit.apiserver.kinds.served import known_kind
from drakit.apiserver.storage.objectstore import ObjectStore

_POD = known_kind("v1", "Pod")
_CLASS = known_kind("scheduling.k8s.io/v1", "PriorityClass")
_SYSTEM = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_PREEMPTS = "PreemptLowerPriority"
_KEPT = ("priority", "preemptionPolicy")


class Priority(AdmissionPlugin):
    """The two `system-` classes exist without objects in the store."""

    name = "Priority"

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._classes = Catalogue(objects, _CLASS, lambda document: document)

    def concerns(self, kind: Kind, operation: str, subresource: str) -> bool:
        return (kind is _POD and not subresource) or (kind is _CLASS and operation != DELETE)

    async def admit(self, change: ObjectChange) -> None:
        if change.kind is not _POD or change.subresource or change.new is None:
            return
        if change.operation == CREATE:
            await self._complete(change, change.own("spec"))
        elif change.old is not None:
            _keep(change, change.old.document["spec"])

    async def validate(self, change: ObjectChange) -> None:
        if change.kind is not _CLASS or change.operation == DELETE or not change.document.get("globalDefault"):
            return
        other = await self._default()
        if other is not None and other["metadata"]["name"] != change.name:
            found = other["metadata"]["name"]
            raise change.forbid(f"PriorityClass {found} is already marked as default. Only one default can exist")

    async def _complete(self, change: ObjectChange, spec: Plain) -> None:
        name = spec.get("priorityClassName", "")
        found: Plain = {}
        if name:
            found = await self._named(change, name)
        elif not self._classes.is_empty:
            found = await self._default() or {}
        value, policy = found.get("value", 0), found.get("preemptionPolicy") or _PREEMPTS
        _agree(change, spec, value, policy)
        # The default class is named in the pod: later changes of the default do not concern it.
        if found and not name:
            spec["priorityClassName"] = found["metadata"]["name"]
        spec["priority"] = value
        spec["preemptionPolicy"] = policy

    async def _named(self, change: ObjectChange, name: str) -> Plain:
        found = await self._objects.find(_CLASS, "", name)
        if found is not None:
            return found.document
        if name in _SYSTEM:
            return {"metadata": {"name": name}, "value": _SYSTEM[name]}
        raise change.forbid(f"no PriorityClass with name {name} was found")

    async def _default(self) -> Plain | None:
        """The class with `globalDefault`; of several the one with the lowest value."""
        chosen = [each for each in await self._classes.all() if each.get("globalDefault")]
        return min(chosen, key=lambda each: each.get("value", 0)) if chosen else None


def _agree(change: ObjectChange, spec: Plain, value: int, policy: str) -> None:
    if spec.get("priority", value) != value:
        raise change.forbid(
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; priority "
            f"admission controller computed {value} from the given PriorityClass name"
        )
    if spec.get("preemptionPolicy", policy) != policy:
        raise change.forbid(
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name"
        )


def _keep(change: ObjectChange, old: Plain) -> None:
    left_out = [name for name in _KEPT if name in old and name not in change.document["spec"]]
    if left_out:
        change.own("spec").update({name: old[name] for name in left_out})
