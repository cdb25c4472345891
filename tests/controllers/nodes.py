"""Scenes and objects for the tests of nodes, here and elsewhere."""

from __future__ import annotations

from drakit.api.text.times import format_time
from drakit.client import NODES
from tests.builders.cluster import Cluster
from tests.builders.manifests import node, pod, resource_slice

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


async def beat(it: Cluster, ready: str = "True") -> None:
    """What a node agent writes: its condition."""
    now = format_time(it.clock.now())
    condition = {"type": "Ready", "status": ready, "lastHeartbeatTime": now, "lastTransitionTime": now, "reason": "x"}
    await it.set_status(NODES, "node-1", {"conditions": [condition]})


async def a_node_dies(it: Cluster) -> None:
    await it.create(node("node-1"), pod("p", node="node-1"), resource_slice("s", "d0"))
    await beat(it)
    await it.run_for(120)
    await it.run_for(300)
    await it.delete(NODES, "node-1", grace=None)
    await it.run_for(60)
