"""Two replicas with leader election: the leader dies in the middle, the other goes on."""

from __future__ import annotations

import asyncio

import pytest

from drakit.client import CLAIMS, PODS, Client, InProcess
from drakit.controllers import ClaimController, Controllers, ReplicaSetController
from drakit.informers import LeaderElector
from tests.controllers.cluster import Cluster, Fatal, cluster, on_loop
from tests.controllers.manifests import template
from tests.controllers.test_replicasets import replica_set, scale

MAKERS = (ClaimController, ReplicaSetController)


class Replica:
    """A process that wants to lead; with `dies_after`, it never writes again after that many writes."""

    def __init__(self, it: Cluster, name: str, *, dies_after: int | None = None) -> None:
        self.transport = Fatal(InProcess(it.server), dies_after)
        self._it = it
        self._client = Client(self.transport, clock=it.clock)
        self.elector = LeaderElector(self._client, name="controllers", identity=name, clock=it.clock)
        self._task = asyncio.create_task(self.elector.run(self._work))

    async def _work(self) -> None:
        await Controllers(self._client, clock=self._it.clock, gates=self._it.gates, makers=MAKERS).run()

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def writes_to(self, plural: str) -> int:
        return sum(method == "POST" and path.endswith(plural) for method, path in self.transport.writes)


@pytest.mark.parametrize("dies_after", range(1, 17))
@on_loop
async def test_nothing_is_lost_and_nothing_is_made_twice(dies_after: int) -> None:
    async with cluster() as it:
        first = Replica(it, "first", dies_after=dies_after)
        await it.run_for(1)
        second = Replica(it, "second")
        await it.create(template(), replica_set(3))
        await it.run_for(60)
        await scale(it, 4)
        await it.run_for(60)
        assert first.transport.died.is_set()
        assert second.elector.leading
        pods, claims = await it.all(PODS), await it.all(CLAIMS)
        assert len(pods) == len(claims) == 4
        named = {each.status.resource_claim_statuses[0].resource_claim_name for each in pods}
        assert named == {each.metadata.name for each in claims}
        for plural in ("pods", "resourceclaims"):
            assert first.writes_to(plural) + second.writes_to(plural) == 4
        await first.stop()
        await second.stop()
