"""The garbage collector and the controller of namespaces die after every single write."""

from __future__ import annotations

from drakit.client import CLAIMS, CONFIG_MAPS, NAMESPACES, POD_GROUPS, PODS
from drakit.controllers.garbage import GarbageCollector, NamespaceController
from drakit.controllers.podgroups import PodGroupProtection
from tests.controllers.cluster import Cluster
from tests.controllers.manifests import claim, pod, pod_group
from tests.controllers.test_garbage import chain, config
from tests.scenarios.crashes import check_every_crash

KINDS = (CONFIG_MAPS, PODS, CLAIMS, NAMESPACES, POD_GROUPS)


async def owners_go(it: Cluster) -> None:
    for propagation in ("Background", "Foreground", "Orphan"):
        await chain(it, block=True)
        await it.delete(CONFIG_MAPS, "a", grace=None, propagation=propagation)
    await it.create(config("x"), config("y"))
    await it.create(config("z", await it.get(CONFIG_MAPS, "x"), await it.get(CONFIG_MAPS, "y")))
    await it.delete(CONFIG_MAPS, "x", grace=None)


async def a_namespace_goes(it: Cluster) -> None:
    await it.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}})
    for document in (config("a"), pod("p", group="pg"), claim("c"), pod_group("pg", [])):
        document["metadata"]["namespace"] = "ns"
        await it.create(document)
    await it.delete(NAMESPACES, "ns", grace=None)
    await it.run_for(10)


def test_owners_that_go_in_every_way() -> None:
    assert check_every_crash(owners_go, (GarbageCollector,), KINDS) >= 7


def test_a_namespace_with_a_pod_a_claim_and_a_group() -> None:
    assert check_every_crash(a_namespace_goes, (NamespaceController, PodGroupProtection), KINDS) >= 5
