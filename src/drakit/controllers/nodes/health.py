"""Whether nodes live: by the lease that their agent renews, and by the heartbeat in their status.

In:  nodes and their leases.
Out: conditions Unknown, when neither has moved for the grace period; taints that follow from the conditions.

What counts is when this process saw them move, by its own clock: nobody compares clocks. A node that has neither lease
nor Ready condition has no agent, and is left alone.
"""

from __future__ import annotations

import logging
from typing import Any

from drakit.api import Lease, Node, to_plain
from drakit.api.objects.partial import Partial
from drakit.api.text.times import format_time
from drakit.client import LEASES, NODES, STRATEGIC, Key, V
from drakit.controllers.context import ControllerContext
from drakit.controllers.nodes.conditions import READY, TOLD_BY_AGENT, ready, taints_for
from drakit.informers import Informer, ListScope, Result

log = logging.getLogger("drakit.controllers")

NAME = "node_lifecycle"
ACCOUNT = "node-controller"
LEASE_NAMESPACE = "kube-node-lease"
GRACE = 50.0
_REASON = "NodeStatusUnknown"
_MESSAGE = "Kubelet stopped posting node status."
Sign = tuple[str | None, str | None]


class NodeHealth:
    def __init__(self, context: ControllerContext, *, grace: float = GRACE) -> None:
        self._client = context.client_of(ACCOUNT)
        self._clock = context.clock
        self._grace = grace
        self._nodes: Informer[Partial[Node]] = context.informers.of(NODES)
        self._leases: Informer[Partial[Lease]] = context.informers.of(LEASES, ListScope(namespace=LEASE_NAMESPACE))
        self._seen: dict[str, tuple[Sign, float]] = {}
        self.loop = context.loop(NAME, self.reconcile)
        self.loops = (self.loop,)
        self._nodes.enqueue(self.loop.queue.add)
        self._leases.enqueue(self.loop.queue.add, lambda lease: [Key("", lease.view.metadata.name)])

    async def reconcile(self, key: Key) -> Result:
        node = self._nodes.cache.get(key)
        if node is None:
            self._seen.pop(key.name, None)
            return Result.done()
        left = self._left(node.view)
        if left is not None and left <= 0 and ready(node.view) != "Unknown":
            log.log(V[1], "node %s: no sign of life for %g s", key.name, self._grace)
            node = await self._set_unknown(node)
        await self._set_taints(node)
        return Result.after(left) if left is not None and left > 0 else Result.done()

    def _left(self, node: Node) -> float | None:
        """Seconds until the node counts as unreachable; None if it has no agent."""
        sign = self._sign(node)
        if sign == (None, None):
            return None
        now = self._clock.monotonic()
        seen = self._seen.get(node.metadata.name)
        if seen is None or seen[0] != sign:
            seen = self._seen[node.metadata.name] = (sign, now)
        return seen[1] + self._grace - now

    def _sign(self, node: Node) -> Sign:
        lease = self._leases.cache.named(node.metadata.name, LEASE_NAMESPACE)
        renewed = (lease.view.spec.renew_time or "") if lease is not None else None
        beats = [each.last_heartbeat_time or "" for each in node.status.conditions if each.type == READY]
        return renewed, beats[0] if beats else None

    async def _set_unknown(self, node: Partial[Node]) -> Partial[Node]:
        there = {each.type: each for each in node.view.status.conditions}
        now = format_time(self._clock.now())
        lost: list[dict[str, Any]] = [
            {
                "type": type_, "status": "Unknown", "reason": _REASON, "message": _MESSAGE, "lastTransitionTime": now,
                "lastHeartbeatTime": there[type_].last_heartbeat_time if type_ in there else None,
            }
            for type_ in TOLD_BY_AGENT
            if type_ == READY or (type_ in there and there[type_].status != "Unknown")
        ]  # fmt: skip
        return await self._client.patch(
            node, {"status": {"conditions": lost}}, kind=STRATEGIC, subresource="status", versioned=True
        )

    async def _set_taints(self, node: Partial[Node]) -> None:
        taints = taints_for(node.view, format_time(self._clock.now()))
        if taints != node.view.spec.taints:
            patch = {"spec": {"taints": [to_plain(each) for each in taints] or None}}
            await self._client.patch(node, patch, versioned=True)
