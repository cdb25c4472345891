"""The same scenarios over real sockets: what they leave is what they leave in process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from random import Random
from typing import Any

import pytest

from drakit.apiserver import Settings, build_server
from drakit.base.clock import FakeClock
from drakit.base.gates import FeatureGates
from drakit.client import (
    CLAIMS,
    CONFIG_MAPS,
    NAMESPACES,
    NODES,
    POD_GROUPS,
    PODS,
    POOL_STATUS_REQUESTS,
    QUOTAS,
    SERVICE_ACCOUNTS,
    Access,
    Client,
    Fixed,
    Resource,
    Trust,
)
from drakit.client.http import Http
from drakit.controllers import (
    ALL,
    ClaimController,
    Controllers,
    DeviceTaintEviction,
    FinishedPods,
    GarbageCollector,
    Make,
    NamespaceController,
    NodeHealth,
    NodeRemains,
    NodeTaintEviction,
    PodGroupProtection,
    PoolStatusController,
    QuotaController,
    ReplicaSetController,
)
from drakit.store import MemoryStore
from tests.client.servers import listening
from tests.conformance import flows
from tests.conformance.test_flows import WITHOUT_SCHEDULER
from tests.controllers.cluster import Cluster, on_loop
from tests.controllers.manifests import node, pod
from tests.controllers.test_nodes import OUT_OF_SERVICE, beat
from tests.controllers.test_replicasets import a_set_comes_and_goes
from tests.controllers.test_serviceaccounts import a_namespace_comes, with_authority
from tests.scenarios.crashes import Left, Mortal, Scenario, left_of, play
from tests.scenarios.test_claim_crashes import a_group_comes_and_goes, pods_come_and_go
from tests.scenarios.test_eviction_crashes import taints_come
from tests.scenarios.test_garbage_crashes import a_namespace_goes, owners_go
from tests.scenarios.test_other_crashes import claims_are_counted, pods_end, pools_are_asked_for

_NODES: tuple[Make, ...] = (NodeHealth, NodeTaintEviction, NodeRemains)


async def a_node_is_given_up(it: Cluster) -> None:
    await it.create(node("node-1"), pod("p", node="node-1"))
    await beat(it, "False")
    found = await it.client.get(NODES, "node-1")
    gone = {"key": OUT_OF_SERVICE, "effect": "NoExecute"}
    await it.client.patch(found, {"spec": {"taints": [*found.document["spec"]["taints"], gone]}})
    await it.settle()


class Wired(Mortal):
    """A cluster whose clients, the test's and the controllers', talk to its server over sockets."""

    url = ""

    def connect(self) -> Client:
        return Client(Http(Access(server=self.url, credentials=Fixed(), trust=Trust())), clock=self.clock)

    async def start(self, makers: Sequence[Make], *, dies_after: int | None = None) -> Controllers:
        del dies_after
        self.running = Controllers(self.connect(), clock=self.clock, gates=self.gates, random=Random(3), makers=makers)
        self._task = asyncio.create_task(self.running.run())
        while not self.running.informers.have_synced:
            await self.client.document("/version")
        await self.settle()
        return self.running

    async def kill(self) -> None:
        running = self.running
        await super().kill()
        if running is not None:
            await running.informers.client.close()

    async def settle(self) -> None:
        """Questions and answers over the same sockets let everything else there happen too."""
        quiet, before = 0, -1
        while quiet < 4:
            for _ in range(3):
                await self.client.document("/version")
            revision = await self.store.revision()
            busy = self.running is not None and not self.running.is_idle
            quiet = 0 if revision != before or busy else quiet + 1
            before = revision


@asynccontextmanager
async def wired(makers: Sequence[Make]) -> AsyncIterator[Wired]:
    clock, gates = FakeClock(), FeatureGates.all_on()
    async with MemoryStore(clock=clock) as store:
        server = await build_server(store, clock=clock, settings=Settings(gates=gates, random=Random(7)))
        async with listening(server) as url:
            it = Wired(server, store, clock, gates)
            it.url = url
            it.client = it.connect()
            try:
                await it.start(makers)
                yield it
            finally:
                await it.kill()
                await it.client.close()


async def play_wired(scenario: Scenario, makers: Sequence[Make], kinds: Sequence[Resource[Any]]) -> Left:
    async with wired(makers) as it:
        await scenario(it)
        return await left_of(it, kinds)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "makers", "kinds"),
    [
        (pods_come_and_go, (ClaimController,), (PODS, CLAIMS)),
        (a_group_comes_and_goes, (ClaimController,), (PODS, CLAIMS, POD_GROUPS)),
        (owners_go, (GarbageCollector,), (CONFIG_MAPS,)),
        (a_namespace_goes, (NamespaceController, PodGroupProtection), (NAMESPACES, PODS, CLAIMS, POD_GROUPS)),
        (taints_come, (DeviceTaintEviction,), (PODS, CLAIMS)),
        (a_set_comes_and_goes, (ReplicaSetController,), (PODS,)),
        (a_node_is_given_up, _NODES, (NODES, PODS)),
        (claims_are_counted, (QuotaController,), (QUOTAS, CLAIMS)),
        (pools_are_asked_for, (PoolStatusController,), (POOL_STATUS_REQUESTS,)),
        (pods_end, (partial(FinishedPods, threshold=1),), (PODS,)),
        (a_namespace_comes, (with_authority,), (SERVICE_ACCOUNTS, CONFIG_MAPS)),
    ],
)
def test_the_scenario_ends_as_in_process(
    scenario: Scenario, makers: Sequence[Make], kinds: Sequence[Resource[Any]]
) -> None:
    over_sockets = asyncio.run(play_wired(scenario, makers, kinds))
    direct = asyncio.run(play(scenario, makers, kinds, rest=0.0))
    assert over_sockets.objects == direct.objects
    assert over_sockets.events == direct.events


@pytest.mark.slow
@pytest.mark.parametrize("name", WITHOUT_SCHEDULER)
@on_loop
async def test_the_flow_ends_as_recorded_over_sockets_too(name: str) -> None:
    async with wired(ALL) as it:
        assert await flows.play(it, flows.flow(name)) == []
