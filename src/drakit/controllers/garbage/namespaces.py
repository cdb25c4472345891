"""Empty namespaces that are being deleted, then let them go.

In:  namespaces with a deletion timestamp and the finalizer `kubernetes`.
Out: everything in them deleted; the finalizer removed when nothing is left; until then conditions that say what is.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from drakit.api import Namespace
from drakit.api.objects.partial import Partial
from drakit.api.text.times import format_time
from drakit.client import EVENTS, NAMESPACES, Key, NotFound, Resource, V, metadata_of
from drakit.controllers.context import ControllerContext
from drakit.controllers.garbage.graph import served
from drakit.informers import Informer, Result

log = logging.getLogger("drakit.controllers")

NAME = "namespace"
ACCOUNT = "namespace-controller"
FINALIZER = "kubernetes"
PATIENCE = 5.0
"""Seconds until what is left is looked at again: it goes when its own finalizers and grace periods are over."""


class Rest(msgspec.Struct, frozen=True):
    """What is left of a namespace's content: objects by kind, finalizers by name."""

    kinds: Counter[str]
    finalizers: Counter[str]


class NamespaceController:
    def __init__(self, context: ControllerContext, *, workers: int = 2) -> None:
        self._client = context.client_of(ACCOUNT)
        self._clock = context.clock
        self._namespaces: Informer[Partial[Namespace]] = context.informers.of(NAMESPACES)
        self._content: list[Resource[Any]] = []
        self.loop = context.loop(NAME, self.reconcile, workers=workers)
        self.loops = (self.loop,)
        self._namespaces.enqueue(self.loop.queue.add)

    async def prepare(self) -> None:
        self._content = [each for each in (*await served(self._client), EVENTS) if each.kind.namespaced]

    async def reconcile(self, key: Key) -> Result:
        namespace = self._namespaces.cache.get(key)
        if namespace is None or namespace.view.metadata.deletion_timestamp is None:
            return Result.done()
        if FINALIZER not in namespace.view.spec.finalizers:
            return Result.done()
        rest = Rest(Counter(), Counter())
        for resource in self._content:
            await self._empty(resource, key.name, rest)
        if rest.kinds:
            await self._tell(namespace, rest)
            return Result.after(PATIENCE)
        await self._finalize(namespace)
        return Result.done()

    async def _empty(self, resource: Resource[Any], namespace: str, rest: Rest) -> None:
        """Delete what has not been deleted yet, and count what stays for now."""
        found = [metadata_of(each) for each in await self._client.list(resource, namespace=namespace)]
        for metadata in found:
            if metadata.deletion_timestamp is None:
                try:
                    await self._client.delete(
                        resource, metadata.name, namespace=namespace, uid=metadata.uid, propagation="Background"
                    )
                except NotFound:
                    continue
        for each in await self._client.list(resource, namespace=namespace) if found else ():
            rest.kinds[resource.name] += 1
            rest.finalizers.update(metadata_of(each).finalizers)

    async def _finalize(self, namespace: Partial[Namespace]) -> None:
        log.log(V[2], "namespace %s is empty", namespace.view.metadata.name)
        kept = [name for name in namespace.view.spec.finalizers if name != FINALIZER]
        document = {**namespace.document, "spec": {**namespace.document.get("spec", {}), "finalizers": kept}}
        await self._client.call("PUT", NAMESPACES, namespace.view.metadata.name, "finalize", document)

    async def _tell(self, namespace: Partial[Namespace], rest: Rest) -> None:
        """Say what is left, if that is not what the conditions say already."""
        old: list[Mapping[str, Any]] = namespace.document.get("status", {}).get("conditions") or []
        new = [self._condition(old, *each) for each in _conditions(rest)]
        others = [each for each in old if each["type"] not in {each["type"] for each in new}]
        if [*others, *new] != old:
            status = {**namespace.document.get("status", {}), "conditions": [*others, *new]}
            await self._client.update({**namespace.document, "status": status}, subresource="status")

    def _condition(self, old: list[Mapping[str, Any]], type_: str, reason: str, message: str) -> dict[str, Any]:
        before = next((each for each in old if each["type"] == type_), {})
        since = before.get("lastTransitionTime") or format_time(self._clock.now())
        return {"type": type_, "status": "True", "lastTransitionTime": since, "reason": reason, "message": message}


def _conditions(rest: Rest) -> list[tuple[str, str, str]]:
    kinds = ", ".join(f"{name} has {count} resource instances" for name, count in sorted(rest.kinds.items()))
    found = [("NamespaceContentRemaining", "SomeResourcesRemain", f"Some resources are remaining: {kinds}")]
    if rest.finalizers:
        names = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(rest.finalizers.items()))
        message = f"Some content in the namespace has finalizers remaining: {names}"
        found.append(("NamespaceFinalizersRemaining", "SomeFinalizersRemain", message))
    return found
