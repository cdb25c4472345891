"""Evict pods from nodes with NoExecute taints, when what they tolerate is over.

In:  pods with a node, and nodes.
Out: an event, the condition DisruptionTarget, and the pod deleted.
"""

from __future__ import annotations

from datetime import datetime

from drakit.api import Node, Pod
from drakit.api.objects.partial import Partial
from drakit.base.taints import NO_EXECUTE
from drakit.client import NODES, PODS, Key, key_of
from drakit.client.events import NORMAL
from drakit.controllers.context import ControllerContext
from drakit.controllers.disruption import mark_disrupted
from drakit.controllers.tolerations import moment_after, seconds_on_node
from drakit.informers import Informer, Result, by_node

NAME = "taint_eviction"
COMPONENT = "taint-eviction-controller"
ACCOUNT = "node-controller"


class NodeTaintEviction:
    def __init__(self, context: ControllerContext, *, workers: int = 4) -> None:
        self._client = context.client_of(ACCOUNT)
        self._clock = context.clock
        self._recorder = context.recorder(self._client, COMPONENT)
        self._pods: Informer[Partial[Pod]] = context.informers.of(PODS)
        self._nodes: Informer[Partial[Node]] = context.informers.of(NODES)
        self._pods.add_index("node", by_node)
        self.loop = context.loop(NAME, self.reconcile, workers=workers)
        self.loops = (self.loop,)
        self._pods.subscribe(self._pod_changed)
        self._nodes.subscribe(self._node_changed)

    def _pod_changed(self, _old: Partial[Pod] | None, new: Partial[Pod] | None) -> None:
        """Most nodes have no taints. One that gets some, or comes after its pods, queues them itself."""
        node = self._nodes.cache.named(new.view.spec.node_name) if new is not None else None
        if new is not None and node is not None and node.view.spec.taints:
            self.loop.queue.add(key_of(new))

    def _node_changed(self, old: Partial[Node] | None, new: Partial[Node] | None) -> None:
        if new is None or (old is not None and old.view.spec.taints == new.view.spec.taints):
            return
        for key in self._pods.cache.keys_by("node", new.view.metadata.name):
            self.loop.queue.add(key)

    async def reconcile(self, key: Key) -> Result:
        pod = self._pods.cache.get(key)
        node = self._nodes.cache.named(pod.view.spec.node_name) if pod is not None else None
        if pod is None or node is None or pod.view.is_terminal or pod.view.metadata.deletion_timestamp is not None:
            return Result.done()
        at = eviction_time(pod.view, node.view)
        if at is None:
            return Result.done()
        wait = (at - self._clock.now()).total_seconds()
        if wait > 0:
            return Result.after(wait)
        await self._recorder.tell(
            "Pod", "v1", pod, "TaintManagerEviction", f"Marking for deletion Pod {key}", type_=NORMAL
        )
        message = "Taint manager: deleting due to NoExecute taint"
        await mark_disrupted(self._client, self._clock, pod, "DeletionByTaintManager", message)
        await self._client.delete_object(pod)
        return Result.done()


def eviction_time(pod: Pod, node: Node) -> datetime | None:
    """When the node's taints drive a pod away; none when it tolerates them all for ever."""
    moments = []
    for taint in node.spec.taints:
        seconds = seconds_on_node(pod.spec.tolerations, taint) if taint.effect == NO_EXECUTE else None
        if seconds is not None:
            moments.append(moment_after(taint.time_added, seconds))
    return min(moments, default=None)
