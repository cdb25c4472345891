"""Garbage collection: owners and dependents, namespaces, pods that have ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from unittest.mock import MagicMock

import pytest

from drakit.client import CLAIMS, CONFIG_MAPS, NAMESPACES, NODES, POD_GROUPS, PODS, SLICES, Conflict
from drakit.controllers.garbage import FinishedPods, GarbageCollector, NamespaceController, collector
from drakit.controllers.garbage.graph import served
from drakit.controllers.podgroups import PodGroupProtection
from tests.builders.cluster import Cluster, cluster, on_loop
from tests.builders.manifests import claim, node, pod, pod_group, resource_slice
from tests.controllers.garbage import chain, config, owned_by

MAKERS = (GarbageCollector, NamespaceController, PodGroupProtection)


@asynccontextmanager
async def running() -> AsyncIterator[Cluster]:
    async with cluster() as made:
        await made.start(MAKERS)
        yield made


async def names(it: Cluster) -> list[str]:
    """Those of the tests. The server has some of its own in kube-system."""
    found = [each.metadata for each in await it.all(CONFIG_MAPS)]
    return sorted(each.name for each in found if each.namespace != "kube-system")


@on_loop
async def test_in_the_background_dependents_go_after_their_owner() -> None:
    async with running() as it:
        await chain(it)
        assert await names(it) == ["a", "b", "c"]
        await it.delete(CONFIG_MAPS, "a", grace=None, propagation="Background")
        assert await names(it) == []


@on_loop
async def test_a_dependent_whose_owners_stay_the_same_is_looked_at_once() -> None:
    async with running() as it:
        await chain(it)
        assert it.running is not None
        sample = it.running.registry.get_sample_value
        before = sample("workqueue_adds_total", {"name": "garbage_collector"})
        found = await it.client.get(CONFIG_MAPS, "b", namespace="default")
        await it.client.patch(found, {"data": {"k": "v"}})
        await it.settle()
        assert sample("workqueue_adds_total", {"name": "garbage_collector"}) == before
        await it.client.patch_named(CONFIG_MAPS, "b", {"metadata": {"ownerReferences": None}}, namespace="default")
        await it.delete(CONFIG_MAPS, "a", grace=None, propagation="Background")
        assert await names(it) == ["b", "c"]


@on_loop
async def test_a_dependent_lives_as_long_as_one_of_its_owners() -> None:
    async with running() as it:
        await it.create(config("a"), config("b"))
        owners = [await it.find(CONFIG_MAPS, name) for name in ("a", "b")]
        await it.create(config("c", *owners))
        await it.delete(CONFIG_MAPS, "a", grace=None)
        assert [each.name for each in (await it.find(CONFIG_MAPS, "c")).metadata.owner_references] == ["b"]
        await it.delete(CONFIG_MAPS, "b", grace=None)
        assert await names(it) == []


async def five(it: Cluster) -> list[object]:
    for number in range(5):
        await it.create(config(f"o{number}"))
    return [await it.find(CONFIG_MAPS, f"o{number}") for number in range(5)]


@on_loop
async def test_thousands_of_owners_are_looked_at_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "_OWNERS_TOGETHER", 2)
    async with running() as it:
        owners = await five(it)
        await it.create(config("a", *owners))
        for number in range(5):
            assert "a" in await names(it)
            await it.delete(CONFIG_MAPS, f"o{number}", grace=None)
        assert await names(it) == []


@on_loop
async def test_thousands_of_owners_are_queued_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "_OWNERS_TOGETHER", 2)
    made = GarbageCollector.__new__(GarbageCollector)
    made.loop = MagicMock()
    owners = [MagicMock() for _ in range(5)]
    made._add_owners(iter(owners))
    seen = []
    for _ in range(3):
        seen.append([call.args[0] for call in made.loop.queue.add.call_args_list])
        await asyncio.sleep(0)
    assert seen == [owners[:2], owners[:4], owners]


@on_loop
async def test_orphans_keep_living_without_their_owner() -> None:
    async with running() as it:
        await chain(it)
        await it.delete(CONFIG_MAPS, "a", grace=None, propagation="Orphan")
        assert await names(it) == ["b", "c"]
        assert (await it.find(CONFIG_MAPS, "b")).metadata.owner_references == ()
        assert (await it.find(CONFIG_MAPS, "c")).metadata.owner_references != ()


@on_loop
async def test_in_the_foreground_the_owner_goes_last() -> None:
    async with running() as it:
        await chain(it, block=True)
        held = await it.client.get(CONFIG_MAPS, "c", namespace="default")
        await it.client.patch(held, {"metadata": {"finalizers": ["example.com/x"]}})
        await it.delete(CONFIG_MAPS, "a", grace=None, propagation="Foreground")
        assert await names(it) == ["a", "b", "c"]
        for name in ("a", "b", "c"):
            assert (await it.find(CONFIG_MAPS, name)).metadata.deletion_timestamp
        held = await it.client.get(CONFIG_MAPS, "c", namespace="default")
        await it.client.patch(held, {"metadata": {"finalizers": None}})
        await it.settle()
        assert await names(it) == []


@on_loop
async def test_a_dependent_that_does_not_block_does_not_hold_its_owner() -> None:
    async with running() as it:
        await it.create(config("a"))
        await it.create(config("b", await it.find(CONFIG_MAPS, "a"), finalizers=["example.com/x"]))
        await it.delete(CONFIG_MAPS, "a", grace=None, propagation="Foreground")
        assert await names(it) == ["b"]


@on_loop
async def test_two_that_own_each_other_can_be_deleted_in_the_foreground() -> None:
    async with running() as it:
        await it.create(config("a"))
        await it.create(config("b", await it.find(CONFIG_MAPS, "a"), block=True))
        first = await it.client.get(CONFIG_MAPS, "a", namespace="default")
        owners = owned_by(await it.find(CONFIG_MAPS, "b"), block=True)
        await it.client.patch(first, {"metadata": {"ownerReferences": owners}})
        await it.settle()
        assert await names(it) == ["a", "b"]
        await it.delete(CONFIG_MAPS, "a", grace=None, propagation="Foreground")
        await it.run_for(5)
        assert await names(it) == []


@on_loop
async def test_an_owner_that_never_was_or_is_another_of_that_name_is_gone() -> None:
    async with running() as it:
        await it.create(config("a"))
        reference = {**owned_by(await it.find(CONFIG_MAPS, "a"))[0], "uid": "11111111-1111-1111-1111-111111111111"}
        await it.create(config("b", ownerReferences=[reference]))
        assert await names(it) == ["a"]


@on_loop
async def test_owners_of_kinds_that_nobody_knows_are_taken_to_be_there() -> None:
    async with running() as it:
        reference = {"apiVersion": "example.com/v1", "kind": "Thing", "name": "t", "uid": "1"}
        await it.create(config("b", ownerReferences=[reference]))
        assert await names(it) == ["b"]


@on_loop
async def test_what_lost_its_owner_while_nobody_looked_is_found_at_the_start() -> None:
    async with running() as it:
        await chain(it)
        await it.kill()
        await it.delete(CONFIG_MAPS, "a", grace=None)
        await it.start(MAKERS)
        assert await names(it) == []


@on_loop
async def test_slices_of_the_cluster_go_with_the_node_that_owns_them() -> None:
    async with running() as it:
        await it.create(node("node-1"))
        document = resource_slice("s", "d0")
        document["metadata"]["ownerReferences"] = owned_by(await it.find(NODES, "node-1"))
        await it.create(document)
        await it.delete(NODES, "node-1", grace=None)
        assert await it.all(SLICES) == []


async def discovered(it: Cluster) -> set[tuple[str, str]]:
    """Group and plural of everything that the server says can be listed, watched and deleted."""
    groups = (await it.client.document("/apis"))["groups"]
    places = [f"/apis/{each['groupVersion']}" for group in groups for each in group["versions"]]
    found = set()
    for place in ("/api/v1", *places):
        group = place.split("/")[2] if place.startswith("/apis/") else ""
        resources = (await it.client.document(place))["resources"]
        found |= {(group, each["name"]) for each in resources if {"list", "watch", "delete"} <= {*each["verbs"]}}
    return found


@on_loop
async def test_every_kind_that_the_server_offers_is_followed_but_events() -> None:
    async with cluster() as it:
        followed = {(each.kind.group, each.kind.plural) for each in await served(it.client)}
        offered = await discovered(it)
        assert offered - followed == {("", "events"), ("events.k8s.io", "events")} & offered
        assert followed <= offered


@on_loop
async def test_a_pods_claim_goes_with_the_pod() -> None:
    async with running() as it:
        await it.create(pod("p"))
        await it.create(claim("c", ownerReferences=owned_by(await it.find(PODS, "p"))))
        await it.delete(PODS, "p")
        assert await it.all(CLAIMS) == []


@on_loop
async def test_a_deleted_namespace_is_emptied_and_then_gone() -> None:
    async with running() as it:
        await it.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}})
        for document in (config("a"), pod("p"), claim("c")):
            document["metadata"]["namespace"] = "ns"
            await it.create(document)
        await it.create(config("other"))
        await it.delete(NAMESPACES, "ns", grace=None)
        assert await it.find(NAMESPACES, "ns") is None
        assert await it.all(PODS) == await it.all(CLAIMS) == []
        assert await names(it) == ["other"]


@on_loop
async def test_a_namespace_waits_for_what_has_finalizers_and_says_so() -> None:
    async with running() as it:
        await it.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}})
        await it.create(config("a", finalizers=["example.com/x"]) | {"metadata": {
            "name": "a", "namespace": "ns", "finalizers": ["example.com/x"],
        }})  # fmt: skip
        await it.delete(NAMESPACES, "ns", grace=None)
        found = await it.client.get(NAMESPACES, "ns")
        told = {each["type"]: each["message"] for each in found.document["status"]["conditions"]}
        assert told == {
            "NamespaceContentRemaining": "Some resources are remaining: configmaps has 1 resource instances",
            "NamespaceFinalizersRemaining": (
                "Some content in the namespace has finalizers remaining: example.com/x in 1 resource instances"
            ),
        }
        held = await it.client.get(CONFIG_MAPS, "a", namespace="ns")
        await it.client.patch(held, {"metadata": {"finalizers": None}})
        await it.run_for(10)
        assert await it.find(NAMESPACES, "ns") is None


@on_loop
async def test_the_oldest_of_too_many_pods_that_ended_are_deleted() -> None:
    async with cluster() as it:
        await it.start((partial(FinishedPods, threshold=2),))
        for name in ("a", "b", "c", "d", "running"):
            await it.create(pod(name))
            await it.run_for(1)
        for name in ("d", "c", "b", "a"):
            await it.set_status(PODS, name, {"phase": "Succeeded"})
        await it.run_for(25)
        assert sorted(each.metadata.name for each in await it.all(PODS)) == ["c", "d", "running"]


@on_loop
async def test_a_group_that_is_deleted_stays_until_its_pods_have_ended() -> None:
    async with running() as it:
        await it.create(pod_group("pg", []), pod("p", group="pg"), pod("q", group="pg"))
        await it.delete(POD_GROUPS, "pg", grace=None)
        await it.delete(PODS, "p")
        assert await it.find(POD_GROUPS, "pg") is not None
        await it.set_status(PODS, "q", {"phase": "Succeeded"})
        assert await it.find(POD_GROUPS, "pg") is None


@on_loop
async def test_deleting_names_the_version_that_was_judged() -> None:
    async with cluster() as it:
        await it.create(config("a"))
        old = await it.find(CONFIG_MAPS, "a")
        await it.client.patch_named(CONFIG_MAPS, "a", {"data": {"x": "y"}}, namespace="default")
        with pytest.raises(Conflict):
            await it.client.delete(
                CONFIG_MAPS, "a", namespace="default", resource_version=old.metadata.resource_version
            )
