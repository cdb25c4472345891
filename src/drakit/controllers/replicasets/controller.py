"""Replica sets: as many pods as wanted.

In:  replica sets and pods.
Out: pods made from the template or deleted, orphans adopted, strangers released; the status.

What is missing or too much by the cache is counted again at the server before anything is done about it: the cache may
not have seen what this process, or the one before it, did last.
"""

from __future__ import annotations

import logging
from typing import Any

from drakit.api import Pod, ReplicaSet
from drakit.api.objects.partial import Partial
from drakit.base.errors import DrakitError, Retryable
from drakit.client import PODS, REPLICA_SETS, Key, V, key_of
from drakit.client.events import NORMAL, WARNING
from drakit.controllers.context import ControllerContext
from drakit.controllers.replicasets.selection import (
    SortedPods,
    available_in,
    first_to_go,
    is_active,
    ready_since,
    sort_pods,
)
from drakit.informers import Informer, Result, by_controller

log = logging.getLogger("drakit.controllers")

NAME = "replicaset"
COMPONENT = "replicaset-controller"
BURST = 500
"""Pods that are made or deleted in one go; after them, what is wanted is looked at again."""
OneSet = Partial[ReplicaSet]


class ReplicaSetController:
    def __init__(self, context: ControllerContext, *, workers: int = 2, burst: int = BURST) -> None:
        self._burst = burst
        self._client = context.client_of(COMPONENT)
        self._clock = context.clock
        self._recorder = context.recorder(self._client, COMPONENT)
        self._sets: Informer[OneSet] = context.informers.of(REPLICA_SETS)
        self._pods: Informer[Partial[Pod]] = context.informers.of(PODS)
        self._pods.add_index("controller", by_controller)
        self.loop = context.loop(NAME, self.reconcile, workers=workers)
        self.loops = (self.loop,)
        self._sets.enqueue(self.loop.queue.add)
        self._pods.enqueue(self.loop.queue.add, self._sets_of)

    def _sets_of(self, pod: Partial[Pod]) -> list[Key]:
        """The set that owns a pod. A pod without an owner belongs to every set whose selector matches it."""
        metadata = pod.view.metadata
        owner = metadata.controller
        if owner is not None:
            return [Key(metadata.namespace, owner.name)] if owner.kind == "ReplicaSet" else []
        sets = self._sets.cache.all(metadata.namespace)
        return [key_of(each) for each in sets if sort_pods(each.view, [pod]).adopted]

    async def reconcile(self, key: Key) -> Result:
        replica_set = self._sets.cache.get(key)
        if replica_set is None:
            return Result.done()
        found = sort_pods(replica_set.view, self._pods.cache.all(key.namespace))
        failed = False
        wrong = found.adopted or found.released or self._difference(replica_set, found)
        if wrong and replica_set.view.metadata.deletion_timestamp is None:
            found, failed = await self._put_right(replica_set)
        wait = await self._tell(replica_set, found)
        return Result.retry() if failed else Result.after(wait) if wait else Result.done()

    def _difference(self, replica_set: OneSet, found: SortedPods) -> int:
        """How many pods are missing; negative, how many are too many."""
        wanted = replica_set.view.spec.replicas
        return (1 if wanted is None else wanted) - sum(map(is_active, found.owned))

    async def _put_right(self, replica_set: OneSet) -> tuple[SortedPods, bool]:
        """Create or delete pods. Return the pods after that, and whether some could not be created."""
        metadata = replica_set.view.metadata
        now = await self._client.find(REPLICA_SETS, metadata.name, namespace=metadata.namespace)
        if now is None or now.view.metadata.uid != metadata.uid or now.view.metadata.deletion_timestamp is not None:
            return SortedPods([], [], []), False
        found = sort_pods(now.view, await self._client.list(PODS, namespace=metadata.namespace))
        for pod in found.adopted:
            await self._set_owners(pod, [*_owners(pod), _owner(now)])
        for pod in found.released:
            await self._set_owners(pod, [each for each in _owners(pod) if each["uid"] != metadata.uid])
        owned = SortedPods([*found.owned, *found.adopted], [], [])
        missing = self._difference(now, owned)
        if missing > 0:
            return owned, not await self._make(now, owned, min(missing, self._burst))
        for pod in first_to_go(filter(is_active, owned.owned))[: min(-missing, self._burst)]:
            await self._client.delete_object(pod)
            owned.owned.remove(pod)
            await self._say(now, "SuccessfulDelete", f"Deleted pod: {pod.view.metadata.name}", NORMAL)
        return owned, False

    async def _make(self, replica_set: OneSet, owned: SortedPods, count: int) -> bool:
        for _ in range(count):
            try:
                made = await self._client.create(_pod(replica_set))
            except Retryable:
                raise
            except DrakitError as error:
                await self._say(replica_set, "FailedCreate", f"Error creating: {error}", WARNING)
                return False
            pod = made if type(made) is Partial else Partial.of(Pod, made)
            owned.owned.append(pod)
            log.log(V[2], "replica set %s: made pod %s", replica_set.view.metadata.name, pod.view.metadata.name)
            await self._say(replica_set, "SuccessfulCreate", f"Created pod: {pod.view.metadata.name}", NORMAL)
        return True

    async def _set_owners(self, pod: Partial[Pod], owners: list[dict[str, Any]]) -> None:
        await self._client.patch(pod, {"metadata": {"ownerReferences": owners or None}}, versioned=True)

    async def _say(self, replica_set: OneSet, reason: str, message: str, type_: str) -> None:
        await self._recorder.tell("ReplicaSet", "apps/v1", replica_set, reason, message, type_=type_)

    async def _tell(self, replica_set: OneSet, found: SortedPods) -> float:
        """Write the status if it has changed; the seconds until it changes without anything happening, else zero."""
        view, now = replica_set.view, self._clock.now()
        active = [pod for pod in found.owned if is_active(pod)]
        waits = [available_in(pod, view.spec.min_ready_seconds, now) for pod in active]
        labels = view.spec.template.metadata.labels
        status = {
            "replicas": len(active),
            "fullyLabeledReplicas": sum(labels.items() <= pod.view.metadata.labels.items() for pod in active),
            "readyReplicas": sum(ready_since(pod) is not None for pod in active),
            "availableReplicas": sum(wait == 0 for wait in waits),
            "observedGeneration": view.metadata.generation,
        }
        before = replica_set.document.get("status") or {}
        if any((before.get(name) or 0) != value for name, value in status.items()):
            await self._client.update({**replica_set.document, "status": {**before, **status}}, subresource="status")
        return min((wait for wait in waits if wait), default=0.0)


def _pod(replica_set: OneSet) -> dict[str, Any]:
    template = replica_set.document["spec"]["template"]
    about = template.get("metadata") or {}
    metadata = {
        "generateName": f"{replica_set.view.metadata.name}-",
        "namespace": replica_set.view.metadata.namespace,
        "labels": about.get("labels") or {},
        "annotations": about.get("annotations") or {},
        "finalizers": about.get("finalizers") or [],
        "ownerReferences": [_owner(replica_set)],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def _owner(replica_set: OneSet) -> dict[str, Any]:
    metadata = replica_set.view.metadata
    return {
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": metadata.name, "uid": metadata.uid,
        "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip


def _owners(pod: Partial[Pod]) -> list[dict[str, Any]]:
    return list(pod.document["metadata"].get("ownerReferences") or ())
