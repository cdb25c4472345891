"""Thousands of simulated nodes in one process: memory, idle CPU, time to run pods. Run as `python -m benchmarks nodes`.

Each node publishes 8 devices. Each pod is bound to its node and has a claim, allocated and reserved: nodes and the API
server below them are measured, not the scheduler. The driver answers at once, at the agent's gRPC seam.
"""

from __future__ import annotations

import asyncio
import gc
import resource
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from benchmarks.report import publish
from drakit.api.exchange import User
from drakit.apiserver import Server, Settings, build_server
from drakit.base.clock import RealClock
from drakit.base.gates import FeatureGates
from drakit.base.quantity import Quantity
from drakit.cli.processes.fleet import FixedSockets, InstantDialer
from drakit.client import CLAIMS, PODS, Client, InProcess, bind
from drakit.nodeagent.agent import NodeAgent
from drakit.nodeagent.node.facts import MachineFacts
from drakit.nodeagent.pods.feed import SharedPodFeeds
from drakit.nodeagent.runtimes.simulated import SimulatedRuntime
from drakit.nodeagent.settings import AgentPaths, AgentSettings
from drakit.store import MemoryStore

NODES = 2000
PODS_TO_RUN = 10_000
DEVICES = 8
DRIVER = "gpu.example.com"
IDLE_SECONDS = 20.0
_TOGETHER = 50


def _agent(server: Server, feeds: SharedPodFeeds, number: int, root: Path) -> NodeAgent:
    clock, name = RealClock(), f"node-{number:04d}"
    user = User(name=f"system:node:{name}", groups=("system:nodes", "system:authenticated"))
    paths = replace(AgentPaths.below(root / name), pod_resources=None)
    capacity = {"cpu": Quantity.of(64), "memory": Quantity.parse("256Gi"), "pods": Quantity.of(110)}
    return NodeAgent(
        Client(InProcess(server, user), clock=clock),
        SimulatedRuntime(clock=clock),
        AgentSettings(name, paths, MachineFacts(capacity), FeatureGates.all_on(), serves_device_plugins=False),
        clock=clock,
        dialer=InstantDialer(),
        directory=FixedSockets([DRIVER]),
        registry=CollectorRegistry(),
        pods=feeds.of(name),
        flush=lambda _: None,
    )


@asynccontextmanager
async def _cluster(count: int) -> AsyncIterator[tuple[Client, list[NodeAgent]]]:
    clock = RealClock()
    settings = Settings(gates=FeatureGates.all_on(), modes=("Node", "RBAC"))
    with tempfile.TemporaryDirectory() as directory:
        async with (
            MemoryStore(clock=clock) as store,
            await build_server(store, clock=clock, settings=settings) as server,
        ):
            feeds = SharedPodFeeds(Client(InProcess(server), clock=clock))
            watching = asyncio.create_task(feeds.run())
            agents = [_agent(server, feeds, number, Path(directory)) for number in range(count)]
            tasks = [asyncio.create_task(agent.run()) for agent in agents]
            try:
                await asyncio.gather(*(agent.wait_ready() for agent in agents))
                yield Client(InProcess(server), clock=clock), agents
            finally:
                await asyncio.gather(*(agent.stop() for agent in agents))
                await asyncio.gather(*tasks)
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)


async def _publish(client: Client, node: str) -> None:
    spec = {
        "driver": DRIVER,
        "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"gpu-{number}"} for number in range(DEVICES)],
    }
    about = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": node}}
    await client.create({**about, "spec": spec})


async def _run_pod(client: Client, number: int, node: str) -> None:
    name = f"pod-{number:05d}"
    claim: dict[str, Any] = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    metadata = {"name": name, "namespace": "default"}
    await client.create({**claim, "metadata": metadata, "spec": {"devices": {"requests": [request]}}})
    container = {"name": "main", "image": "none", "resources": {"claims": [{"name": "gpu"}]}}
    spec = {"containers": [container], "resourceClaims": [{"name": "gpu", "resourceClaimName": name}]}
    await client.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    pod = await client.get(PODS, name, namespace="default")
    device = f"gpu-{number // NODES % DEVICES}"
    result = {"request": "gpu", "driver": DRIVER, "pool": node, "device": device}
    user = {"resource": "pods", "name": name, "uid": pod.view.metadata.uid}
    status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [user]}
    await client.patch_status(await client.get(CLAIMS, name, namespace="default"), status)
    await bind(client, pod, node)


def _running(agents: Sequence[NodeAgent]) -> int:
    workers = (worker for agent in agents for worker in agent.workers.all())
    return sum(worker.pod is not None and worker.pod.view.status.phase == "Running" for worker in workers)


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def measure(nodes: int, pods: int) -> list[tuple[str, str, str]]:
    gc.collect()
    before, start, begun = _megabytes(), time.process_time(), time.perf_counter()
    async with _cluster(nodes) as (client, agents):
        up = (time.perf_counter() - begun, time.process_time() - start, _megabytes() - before)
        for agent in agents:
            await _publish(client, agent.settings.node)
        start = time.process_time()
        await asyncio.sleep(IDLE_SECONDS)
        idle = (time.process_time() - start) / IDLE_SECONDS
        start, begun = time.process_time(), time.perf_counter()
        for first in range(0, pods, _TOGETHER):
            numbers = range(first, min(first + _TOGETHER, pods))
            await asyncio.gather(*(_run_pod(client, each, agents[each % nodes].settings.node) for each in numbers))
        while _running(agents) < pods:  # noqa: ASYNC110 - a look, so that nothing is measured that is not there
            await asyncio.sleep(0.2)
        ran = (time.perf_counter() - begun, time.process_time() - start, _megabytes() - before)
    per_pod = ran[1] / pods * 1000
    return [
        (f"{nodes:,} nodes come up", f"{up[0]:.1f} s", f"CPU {up[1]:.1f} s, {up[2]:.0f} MB"),
        (f"{nodes:,} idle nodes", f"{idle:.1%} of a core", "leases every 10 s"),
        (
            f"{pods:,} pods with a claim run",
            f"{ran[0]:.1f} s",
            f"CPU {per_pod:.1f} ms a pod, {ran[2]:.0f} MB",
        ),
    ]


def main() -> None:
    rows = asyncio.run(measure(NODES, PODS_TO_RUN))
    publish("nodes", f"Simulated nodes in one process, {DEVICES} devices each", ("what", "took", "with"), rows)


if __name__ == "__main__":
    main()
