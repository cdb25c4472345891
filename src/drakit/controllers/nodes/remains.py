"""Clear away what is left of nodes that are gone or out of service.

In:  nodes that are deleted, or not ready and tainted `node.kubernetes.io/out-of-service`; their pods and slices.
Out: pods of a node that is gone, and pods being deleted on one that is out of service, are deleted at once: nobody is
     there to end them, and their claims are free again. Slices that name a node which is gone are deleted.

That a node is gone is believed after a while, and of the server alone. A slice for a node that was never seen is left
alone, also over a restart: somebody may register it yet. After a restart the pods of a node tell that it was there, so
they go after its slices. Slices that name the node as their owner are the garbage collector's, too.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from drakit.api import Node, Pod, ResourceSlice
from drakit.api.objects.partial import Partial
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
MOST_REMEMBERED = 2000
SLICES_FIRST = 5.0
"""How much longer pods stay, at most, while slices of their node are being deleted."""
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
        self._missed: dict[str, float] = {}  # nodes that are not in the cache, since when
        self._deleted: set[str] = set()  # nodes that were there and are not
        self._nodes: Informer[Partial[Node]] = context.informers.of(NODES)
        self._pods: Informer[Partial[Pod]] = context.informers.of(PODS)
        self._slices: Informer[ResourceSlice] = context.informers.of(SLICES)
        self._pods.add_index("node", by_node)
        self._slices.add_index("node", by_node)
        self.loop = context.loop(NAME, self.reconcile)
        self.loops = (self.loop,)
        self._nodes.subscribe(self._node_changed)
        self._pods.subscribe(self._pod_changed)
        self._slices.enqueue(lambda key: self.loop.queue.add(NodeWorkItem(SLICE, key)))

    def _pod_changed(self, _old: Partial[Pod] | None, new: Partial[Pod] | None) -> None:
        """Pods whose node is there and who may stay are none of our business; a node that goes queues its pods."""
        if new is None or not new.view.spec.node_name:
            return
        if new.view.metadata.deletion_timestamp is not None or not self._has_node(new.view.spec.node_name):
            self.loop.queue.add(NodeWorkItem(POD, key_of(new)))

    def _has_node(self, name: str) -> bool:
        return self._nodes.cache.named(name) is not None

    def _node_changed(self, old: Partial[Node] | None, new: Partial[Node] | None) -> None:
        node = new if new is not None else old
        if node is None:
            return
        name = node.view.metadata.name
        if new is None:
            self._forget_others()
            self._deleted.add(name)
        else:
            self._deleted.discard(name)
            self._missed.pop(name, None)
        for pod in self._pods.by("node", name):
            self.loop.queue.add(NodeWorkItem(POD, key_of(pod)))
        for each in self._slices.by("node", name):
            self.loop.queue.add(NodeWorkItem(SLICE, key_of(each)))

    def _forget_others(self) -> None:
        """Names of nodes of which nothing is left. Some thousand are no burden, and then each costs little."""
        if len(self._deleted) + len(self._missed) > MOST_REMEMBERED:
            self._deleted = {name for name in self._deleted if self._leaves(name)}
            self._missed = {name: since for name, since in self._missed.items() if self._leaves(name)}

    def _leaves(self, node: str) -> bool:
        """Whether there are pods or slices of the node."""
        return bool(self._pods.by("node", node) or self._slices.by("node", node))

    async def reconcile(self, item: NodeWorkItem) -> Result:
        return await (self._pod(item.key) if item.sort == POD else self._slice(item.key))

    async def _pod(self, key: Key) -> Result:
        pod = self._pods.cache.get(key)
        if pod is None or not pod.view.spec.node_name:
            return Result.done()
        node = self._nodes.cache.named(pod.view.spec.node_name)
        if node is None:
            name = pod.view.spec.node_name
            more = SLICES_FIRST if name in self._deleted and self._slices.by("node", name) else 0.0
            return await self._wait_or(self._delete_pod, pod, name, more)
        if pod.view.metadata.deletion_timestamp is not None and is_out_of_service(node.view):
            await self._delete_pod(pod)
        return Result.done()

    async def _slice(self, key: Key) -> Result:
        found = self._slices.cache.get(key)
        if found is None or not found.spec.node_name or self._nodes.cache.named(found.spec.node_name) is not None:
            return Result.done()
        # A pod that was bound to the node says that it was there.
        if self._pods.by("node", found.spec.node_name):
            self._deleted.add(found.spec.node_name)
        if found.spec.node_name not in self._deleted:
            return Result.done()
        return await self._wait_or(self._collector.delete_object, found, found.spec.node_name)

    async def _wait_or(self, act: Callable[[Any], Awaitable[None]], obj: Any, node: str, more: float = 0.0) -> Result:
        """Act if the node has been missing for long enough and the server confirms it; otherwise look again later.

        `more` seconds longer than usual: then it is looked at again every second of them.
        """
        now = self._clock.monotonic()
        left = self._missed.setdefault(node, now) + PATIENCE - now
        if left + more > 0:
            return Result.after(max(left, 1.0))
        if await self._client.find(NODES, node) is None:
            log.log(V[2], "node %s is gone: deleting what is left of it", node)
            await act(obj)
        return Result.done()

    async def _delete_pod(self, pod: Partial[Pod]) -> None:
        if not pod.view.is_terminal:
            message = "PodGC: node no longer exists or is out of service"
            await mark_disrupted(self._client, self._clock, pod, "DeletionByPodGC", message)
        await self._client.delete_object(pod, grace=0)
