"""Two replicas with leader election: the leader dies in the middle, the other goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from prometheus_client import CollectorRegistry

from drakit.apiserver.auth.identities import CONTROLLER_MANAGER
from drakit.client import CLAIMS, CONFIG_MAPS, NAMESPACES, NODES, PODS, QUOTAS, SERVICE_ACCOUNTS, bind, metadata_of
from drakit.controllers import ALL
from drakit.informers import LeaderElector
from tests.builders.cluster import Cluster, run_stepped
from tests.builders.manifests import allocation, consumer, device_class, node, resource_slice, template
from tests.controllers.eviction import KEY, taint_slice
from tests.controllers.garbage import config
from tests.controllers.nodes import beat
from tests.controllers.quotas import COUNT, quota
from tests.controllers.replicasets import replica_set, scale
from tests.scenarios.crashes import Stage, in_process
from tests.scenarios.wired import over_sockets

NAME = "controllers"


class Replica:
    """A process that wants to lead; with `dies_after`, it never writes again after that many writes."""

    def __init__(self, it: Cluster, name: str, *, dies_after: int | None = None) -> None:
        self.line = it.line(dies_after)
        self.registry = CollectorRegistry()
        client = it.client_as(CONTROLLER_MANAGER, self.line)
        self.elector = LeaderElector(client, name=NAME, identity=name, clock=it.clock, registry=self.registry)
        self._it = it
        self._task = asyncio.create_task(self.elector.run(self._work))

    async def _work(self) -> None:
        await self._it.identified(self.line, ALL).run()

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self.line.close()
        assert self.line.refused == []

    def made(self, plural: str) -> int:
        return sum(path.endswith(f"/{plural}") for path in self.line.created)

    def is_master(self) -> float | None:
        return self.registry.get_sample_value("leader_election_master_status", {"name": NAME})


@asynccontextmanager
async def replicas(stage: Stage, dies_after: int | None) -> AsyncIterator[tuple[Cluster, Replica, Replica]]:
    async with stage() as it:
        first = Replica(it, "first", dies_after=dies_after)
        await it.run_for(1)
        second = Replica(it, "second")
        try:
            yield it, first, second
        finally:
            await first.stop()
            await second.stop()


async def everything_happens(it: Cluster) -> None:
    """Work for every controller: sets, claims, quotas, owners, namespaces, tainted devices and nodes."""
    await it.create(device_class(), node("node-1"), template(), quota(**{COUNT: "20"}), replica_set(3))
    await it.create(resource_slice("s", "d0"), config("owner"))
    await it.create(config("owned", await it.find(CONFIG_MAPS, "owner")))
    await it.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "going"}})
    await beat(it)
    await it.run_for(20)
    await it.delete(CONFIG_MAPS, "owner", grace=None)
    await it.delete(NAMESPACES, "going", grace=None)
    await it.run_for(20)
    await a_device_is_tainted(it)
    await it.run_for(60)  # the node says nothing more: it is lost
    await scale(it, 4)
    await it.run_for(60)


async def a_device_is_tainted(it: Cluster) -> None:
    """A pod has a node and a device, whose driver says that it must go; in the end the node says that it is gone."""
    pod = min(await it.client.list(PODS), key=lambda each: each.view.metadata.name)
    [status] = pod.view.status.resource_claim_statuses
    given = {"allocation": allocation(), "reservedFor": [consumer(pod.view)]}
    await it.set_status(CLAIMS, status.resource_claim_name or "", given)
    await bind(it.client, pod, "node-1")
    await taint_slice(it, 0, [{"key": KEY, "effect": "NoExecute"}])
    await it.run_for(30)
    assert (await it.find(PODS, pod.view.metadata.name)).metadata.deletion_timestamp is not None
    await it.delete(PODS, pod.view.metadata.name)


async def check(it: Cluster, first: Replica, second: Replica) -> None:
    pods, claims = await it.all(PODS), await it.all(CLAIMS)
    assert len(pods) == len(claims) == 4
    named = {each.status.resource_claim_statuses[0].resource_claim_name for each in pods}
    assert named == {each.metadata.name for each in claims}
    for plural in ("pods", "resourceclaims"):
        assert first.made(plural) + second.made(plural) == 5
    names = {metadata_of(each).name for each in await it.all(CONFIG_MAPS)}
    assert names == {"kube-root-ca.crt", "kube-apiserver-legacy-service-account-token-tracking"}
    namespaces = {each.metadata.name for each in await it.all(NAMESPACES)}
    assert "going" not in namespaces
    assert {each.metadata.namespace for each in await it.all(SERVICE_ACCOUNTS)} == namespaces
    assert {each.key for each in (await it.find(NODES, "node-1")).spec.taints} >= {"node.kubernetes.io/unreachable"}
    [counted] = await it.all(QUOTAS)
    assert str(counted.status.used[COUNT]) == "4"


async def play(stage: Stage, dies_after: int | None) -> tuple[int, bool]:
    """How many writes the first replica made, and whether it died of them."""
    async with replicas(stage, dies_after) as (it, first, second):
        await everything_happens(it)
        written = len(first.line.writes)
        await it.run_for(60)
        await check(it, first, second)
        died = first.line.died.is_set()
        assert second.elector.leading == died
        assert (second.is_master(), first.elector.leading) == ((1.0, False) if died else (0.0, True))
        return written, died


def writes_of_a_leader_that_lives() -> int:
    return run_stepped(play(in_process, None))[0]


def test_a_standby_does_nothing_as_long_as_the_leader_lives() -> None:
    assert writes_of_a_leader_that_lives() > 80


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
def test_whenever_the_leader_dies_nothing_is_lost_and_nothing_is_made_twice(part: int) -> None:
    deaths = 0
    for dies_after in range(1 + 4 * part, writes_of_a_leader_that_lives(), 8):
        deaths += run_stepped(play(in_process, dies_after))[1]
    assert deaths > 15


@pytest.mark.parametrize("dies_after", [4, 20, 36, 52, 68, 84])
def test_a_leader_that_dies_in_the_middle(dies_after: int) -> None:
    assert run_stepped(play(in_process, dies_after))[1]


@pytest.mark.slow
@pytest.mark.parametrize("dies_after", [5, 17, 29, 41])
def test_over_sockets_too(dies_after: int) -> None:
    assert run_stepped(play(over_sockets, dies_after))[1]
