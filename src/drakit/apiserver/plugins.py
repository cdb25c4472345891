"""Admission plugins that every server has: namespaces in order, pods with a priority and patience for bad nodes.

In:  changes on their way to the store.
Out: completed pods; refusals of writes into namespaces that are not there or on their way out.
"""

from __future__ import annotations

from typing import Any

from drakit.apiserver.admission import CREATE, DELETE, Change, Plugin
from drakit.apiserver.failures import ApiError
from drakit.apiserver.keeping import Keeper, not_found, prefix_of
from drakit.apiserver.objects import Plain
from drakit.apiserver.serving import known_kind
from drakit.base import status
from drakit.base.status import StatusCause, StatusDetails

IMMORTAL = ("default", "kube-system", "kube-public")
_NAMESPACE = known_kind("v1", "Namespace")
_PRIORITY_CLASS = known_kind("scheduling.k8s.io/v1", "PriorityClass")
_SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_TOLERATION_SECONDS = 300
_BAD_NODES = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class NamespaceLifecycle(Plugin):
    name = "NamespaceLifecycle"

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper

    async def admit(self, change: Change) -> None:
        if change.kind is _NAMESPACE:
            if change.operation == DELETE and change.name in IMMORTAL:
                raise change.forbid("this namespace may not be deleted")
            return
        if change.operation != CREATE or not change.kind.namespaced:
            return
        namespace = await self._keeper.find(_NAMESPACE, "", change.namespace)
        if namespace is None:
            raise not_found(_NAMESPACE, change.namespace)
        if namespace.metadata.get("deletionTimestamp"):
            raise _terminating(change)


def _terminating(change: Change) -> ApiError:
    why = f"unable to create new content in namespace {change.namespace} because it is being terminated"
    answer = status.forbidden(change.kind.plural, change.kind.group, change.name, why)
    cause = StatusCause(
        reason="NamespaceTerminating",
        message=f"namespace {change.namespace} is being terminated",
        field="metadata.namespace",
    )
    details = StatusDetails(name=change.name, group=change.kind.group, kind=change.kind.plural, causes=(cause,))
    return ApiError(status.failure(answer.code, answer.reason, answer.message, details))


class Priority(Plugin):
    """A pod's priority class becomes a number."""

    name = "Priority"

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper

    async def admit(self, change: Change) -> None:
        if change.kind.kind != "Pod" or change.subresource or change.new is None:
            return
        if change.operation == CREATE:
            await self._complete(change, change.new["spec"])
        elif change.old is not None and "priority" in change.old.document["spec"]:
            change.new["spec"].setdefault("priority", change.old.document["spec"]["priority"])

    async def _complete(self, change: Change, spec: Plain) -> None:
        name = spec.get("priorityClassName", "")
        found = await self._named(change, name) if name else await self._default()
        value, policy = (found.get("value", 0), found.get("preemptionPolicy")) if found else (0, None)
        if spec.get("priority", value) != value:
            raise change.forbid(
                f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; priority "
                f"admission controller computed {value} from the given PriorityClass name"
            )
        if found and not name:
            spec["priorityClassName"] = found["metadata"]["name"]
        spec["priority"] = value
        spec.setdefault("preemptionPolicy", policy or "PreemptLowerPriority")

    async def _named(self, change: Change, name: str) -> Plain:
        found = await self._keeper.find(_PRIORITY_CLASS, "", name)
        if found is not None:
            return found.document
        if name in _SYSTEM_PRIORITIES:
            return {"metadata": {"name": name}, "value": _SYSTEM_PRIORITIES[name]}
        raise change.forbid(f"no PriorityClass with name {name} was found")

    async def _default(self) -> Plain | None:
        """The class that says so; of several the one with the lowest value."""
        page = await self._keeper.store.list(prefix_of(_PRIORITY_CLASS))
        classes = [self._keeper.kept(_PRIORITY_CLASS, record).document for record in page.records]
        chosen = [each for each in classes if each.get("globalDefault")]
        return min(chosen, key=lambda each: each.get("value", 0)) if chosen else None


class DefaultTolerationSeconds(Plugin):
    """A pod stays for five minutes on a node that is not ready or not reachable, unless it says otherwise."""

    name = "DefaultTolerationSeconds"

    async def admit(self, change: Change) -> None:
        if change.kind.kind != "Pod" or change.subresource or change.new is None:
            return
        given: list[Plain] = change.new["spec"].get("tolerations") or []
        added = [_toleration(key) for key in _BAD_NODES if not any(_covers(each, key) for each in given)]
        if added:
            change.new["spec"]["tolerations"] = [*given, *added]


def _toleration(key: str) -> dict[str, Any]:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATION_SECONDS}


def _covers(toleration: Plain, key: str) -> bool:
    return toleration.get("key", key) in (key, "") and toleration.get("effect", "") in ("NoExecute", "")


def standard_plugins(keeper: Keeper) -> list[Plugin]:
    return [NamespaceLifecycle(keeper), Priority(keeper), DefaultTolerationSeconds()]
