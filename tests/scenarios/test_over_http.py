"""The same scenarios over real sockets: what they leave is what they leave in process."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

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
    SLICES,
    Resource,
)
from drakit.controllers import (
    ALL,
    ClaimController,
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
from tests.builders.cluster import Cluster, on_loop, run_stepped
from tests.builders.manifests import node, pod
from tests.conformance import flows
from tests.conformance.flows_cases import WITHOUT_SCHEDULER
from tests.controllers.nodes import OUT_OF_SERVICE, a_node_dies, beat
from tests.controllers.replicasets import a_set_comes_and_goes
from tests.controllers.serviceaccounts import a_namespace_comes, with_authority
from tests.scenarios.claim_crashes import a_group_comes_and_goes, pods_come_and_go
from tests.scenarios.crashes import Scenario, check_every_crash, play
from tests.scenarios.eviction_crashes import taints_come
from tests.scenarios.garbage_crashes import a_namespace_goes, owners_go
from tests.scenarios.other_crashes import claims_are_counted, pods_end, pools_are_asked_for
from tests.scenarios.wired import over_sockets

_NODES: tuple[Make, ...] = (NodeHealth, NodeTaintEviction, NodeRemains)


async def a_node_is_given_up(it: Cluster) -> None:
    await it.create(node("node-1"), pod("p", node="node-1"))
    await beat(it, "False")
    found = await it.client.get(NODES, "node-1")
    gone = {"key": OUT_OF_SERVICE, "effect": "NoExecute"}
    await it.client.patch(found, {"spec": {"taints": [*found.document["spec"]["taints"], gone]}})
    await it.settle()


SCENARIOS: tuple[tuple[Scenario, Sequence[Make], Sequence[Resource[Any]], Sequence[str]], ...] = (
    (pods_come_and_go, (ClaimController,), (PODS, CLAIMS), ()),
    (a_group_comes_and_goes, (ClaimController,), (PODS, CLAIMS, POD_GROUPS), ()),
    (owners_go, (GarbageCollector,), (CONFIG_MAPS,), ()),
    (a_namespace_goes, (NamespaceController, PodGroupProtection), (NAMESPACES, PODS, CLAIMS, POD_GROUPS), ()),
    (taints_come, (DeviceTaintEviction,), (PODS, CLAIMS), ("devicetaintrules",)),
    (a_set_comes_and_goes, (ReplicaSetController,), (PODS,), ("replicasets",)),
    (a_node_is_given_up, _NODES, (NODES, PODS), ()),
    (a_node_dies, _NODES, (NODES, PODS, SLICES), ()),
    (claims_are_counted, (QuotaController,), (QUOTAS, CLAIMS), ()),
    (pools_are_asked_for, (PoolStatusController,), (POOL_STATUS_REQUESTS,), ()),
    (pods_end, (partial(FinishedPods, threshold=1),), (PODS,), ()),
    (a_namespace_comes, (with_authority,), (SERVICE_ACCOUNTS, CONFIG_MAPS), ()),
)
"""Each with its controllers, the kinds that it leaves, and what may be written more than once after a crash."""
_NAMES = [each[0].__name__ for each in SCENARIOS]


@pytest.mark.slow
@pytest.mark.parametrize(("scenario", "makers", "kinds", "apart"), SCENARIOS, ids=_NAMES)
def test_the_scenario_ends_as_in_process(
    scenario: Scenario, makers: Sequence[Make], kinds: Sequence[Resource[Any]], apart: Sequence[str]
) -> None:
    del apart
    wired = run_stepped(play(scenario, makers, kinds, stage=over_sockets))
    direct = run_stepped(play(scenario, makers, kinds))
    assert wired.objects == direct.objects
    assert wired.events == direct.events


@pytest.mark.slow
@pytest.mark.parametrize(("scenario", "makers", "kinds", "apart"), SCENARIOS, ids=_NAMES)
def test_controllers_that_die_after_any_write_end_there_too(
    scenario: Scenario, makers: Sequence[Make], kinds: Sequence[Resource[Any]], apart: Sequence[str]
) -> None:
    assert (
        check_every_crash(scenario, makers, kinds, apart=apart, stage=over_sockets, run=run_stepped, exact=False) >= 2
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", WITHOUT_SCHEDULER)
@on_loop
async def test_the_flow_ends_as_recorded_over_sockets_too(name: str) -> None:
    async with over_sockets() as it:
        await it.start(ALL)
        try:
            assert await flows.play(it, flows.flow(name)) == []
        finally:
            await it.kill()
