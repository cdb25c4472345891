"""The controller of claims dies after every single write: nothing is lost, nothing is made twice."""

from __future__ import annotations

from drakit.client import CLAIMS, POD_GROUPS, PODS
from drakit.controllers.claims import ClaimController
from tests.controllers.cluster import Cluster
from tests.controllers.manifests import by_name, by_template, claim, node, pod, pod_group, template
from tests.controllers.test_claims import allocate
from tests.scenarios.crashes import check_every_crash

KINDS = (PODS, CLAIMS, POD_GROUPS)


async def pods_come_and_go(it: Cluster) -> None:
    await it.create(node("node-1"), pod("p", claims=[by_template("a"), by_template("b"), by_name("c", "d")]))
    await it.create(template(), claim("c"))
    owner = await it.get(PODS, "p")
    for made in await it.all(CLAIMS):
        await allocate(it, made.metadata.name, owner)
    await it.create(pod("q", claims=[by_name("c")], node="node-1"))
    await it.set_status(PODS, "p", {"phase": "Succeeded"})
    await it.delete(PODS, "q")


async def a_group_comes_and_goes(it: Cluster) -> None:
    await it.create(template(), pod_group("pg", [by_template()]))
    await it.create(*(pod(name, claims=[by_template()], group="pg") for name in ("p", "q")))
    [made] = await it.all(CLAIMS)
    await allocate(it, made.metadata.name, await it.get(POD_GROUPS, "pg"))
    await it.delete(PODS, "p")
    group = await it.client.get(POD_GROUPS, "pg", namespace="default")
    await it.client.patch(group, {"metadata": {"finalizers": None}})
    await it.delete(POD_GROUPS, "pg", grace=None)


def test_pods_with_claims_of_templates_and_by_name() -> None:
    assert check_every_crash(pods_come_and_go, (ClaimController,), KINDS) >= 10


def test_a_group_with_a_claim_of_a_template() -> None:
    assert check_every_crash(a_group_comes_and_goes, (ClaimController,), KINDS) >= 6
