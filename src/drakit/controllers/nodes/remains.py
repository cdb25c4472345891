"""Clear away what is left of nodes that are gone or out of service.

In:  nodes that are deleted, or not ready and tainted `node.kubernetes.io/out-of-service`; their pods and slices.
Out: pods of a node that is gone, and pods being deleted on one that is out of service, are deleted at once: nobody is
     there to end them, and their claims are free again. Slices that name a node which is gone are deleted.

That a node is gone is believed after a while, and of the server alone. A slice for a node that never was is left alone:
somebody may register it yet.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from drakit.api import Node, Pod, ResourceSlice
from drakit.api.objects.partial import Partial
from drakit.api.text.times import parse_time
from drakit.client import NODES, PODS, SLICES, Key, V, key_of
from drakit.controllers.context import ControllerContext
from drakit.controllers.disruption import mark_disrupted
from drakit.controllers.nodes.conditions import is_out_of_service
from drakit.informers import Informer, Result, by_node

log = logging.getLogger("drakit.controllers")

NAME = "node_remains"
ACCOUNT = "pod-garbage-collector"
COLLECTOR = "generic-garbage-collector"
PATIENCE = 40.0
POD, SLICE = "pod", "slice"


class NodeWorkItem(NamedTuple):
    sort: str
    key: Key

    def __str__(self) -> str:
        return f"{self.sort}:{self.key}"


class NodeRemains:
    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client_of(ACCOUNT)
        self._collector = context.client_of(COLLECTOR)
        self._clock = context.clock
        self._begun = context.clock.now()
        self._missed: dict[str, float] = {}  # nodes that are not in the cache, since when
        self._deleted: set[str] = set()
        self._nodes: Informer[Partial[Node]] = context.informers.of(NODES)
        self._pods: Informer[Partial[Pod]] = context.informers.of(PODS)
        self._slices: Informer[ResourceSlice] = context.informers.of(SLICES)
        self._pods.add_index("node", by_node)
        self._slices.add_index("node", by_node)
        self.loop = context.loop(NAME, self.reconcile)
        self.loops = (self.loop,)
        self._nodes.subscribe(self._node_changed)
        self._pods.enqueue(lambda key: self.loop.queue.add(NodeWorkItem(POD, key)))
        self._slices.enqueue(lambda key: self.loop.queue.add(NodeWorkItem(SLICE, key)))

    def _node_changed(self, old: Partial[Node] | None, new: Partial[Node] | None) -> None:
        node = new if new is not None else old
        if node is None:
            return
        name = node.view.metadata.name
        if new is None:
            self._deleted.add(name)
        else:
            self._deleted.discard(name)
            self._missed.pop(name, None)
        for pod in self._pods.by("node", name):
            self.loop.queue.add(NodeWorkItem(POD, key_of(pod)))
        for each in self._slices.by("node", name):
            self.loop.queue.add(NodeWorkItem(SLICE, key_of(each)))

    async def reconcile(self, item: NodeWorkItem) -> Result:
        return await (self._pod(item.key) if item.sort == POD else self._slice(item.key))

    async def _pod(self, key: Key) -> Result:
        pod = self._pods.cache.get(key)
        if pod is None or not pod.view.spec.node_name:
            return Result.done()
        node = self._nodes.cache.named(pod.view.spec.node_name)
        if node is None:
            return await self._wait_or(self._delete_pod, pod, pod.view.spec.node_name)
        if pod.view.metadata.deletion_timestamp is not None and is_out_of_service(node.view):
            await self._delete_pod(pod)
        return Result.done()

    async def _slice(self, key: Key) -> Result:
        found = self._slices.cache.get(key)
        if found is None or not found.spec.node_name or self._nodes.cache.named(found.spec.node_name) is not None:
            return Result.done()
        older = parse_time(found.metadata.creation_timestamp or "") < self._begun
        if found.spec.node_name not in self._deleted and not older:
            return Result.done()
        return await self._wait_or(self._collector.delete_object, found, found.spec.node_name)

    async def _wait_or(self, act: Callable[[Any], Awaitable[None]], obj: Any, node: str) -> Result:
        """Act if the node has been missing for long enough and the server confirms it; otherwise look again later."""
        now = self._clock.monotonic()
        left = self._missed.setdefault(node, now) + PATIENCE - now
        if left > 0:
            return Result.after(left)
        if await self._client.find(NODES, node) is None:
            log.log(V[2], "node %s is gone: deleting what is left of it", node)
            await act(obj)
        return Result.done()

    async def _delete_pod(self, pod: Partial[Pod]) -> None:
        if not pod.view.is_terminal:
            message = "PodGC: node no longer exists or is out of service"
            await mark_disrupted(self._client, self._clock, pod, "DeletionByPodGC", message)
        await self._client.delete_object(pod, grace=0)
