"""Pods are placed by affinity and spread, from the API server to the binding."""

from __future__ import annotations

from drakit.client import NAMESPACES, PODS
from tests.builders.documents import Plain
from tests.builders.podmanifests import node, pod
from tests.builders.schedulercluster import on_loop, scheduling
from tests.scheduler.plugins.topology import far, near, spread

WEB: Plain = {"labels": {"app": "web"}}


@on_loop
async def test_replicas_that_shun_each_other_get_a_node_each_and_the_last_one_waits() -> None:
    async with scheduling(controllers=()) as it:
        await it.create(node("n1", zone="a"), node("n2", zone="b"))
        for number in range(3):
            await it.create(pod(f"web-{number}", spec=far("zone"), **WEB))
        await it.run_for(3)
        placed = [await it.node_of(f"web-{number}") for number in range(3)]
        assert sorted(placed) == ["", "n1", "n2"]
        waiting = placed.index("")
        assert "node(s) didn't match pod anti-affinity rules" in (await it.told(f"web-{waiting}"))[0]
        await it.delete(PODS, f"web-{(waiting + 1) % 3}")
        await it.run_for(3)
        assert await it.node_of(f"web-{waiting}")


@on_loop
async def test_a_pod_waits_for_its_company_and_follows_it() -> None:
    async with scheduling(controllers=()) as it:
        await it.create(node("n1", zone="a"), node("n2", zone="b"))
        await it.create(pod("guest", spec=near("zone")))
        assert await it.node_of("guest") == ""
        await it.create(pod("host", **WEB))
        await it.run_for(3)
        assert await it.node_of("guest") == await it.node_of("host") != ""


@on_loop
async def test_pods_are_spread_over_the_zones() -> None:
    async with scheduling(controllers=()) as it:
        await it.create(*(node(f"n{each}", zone="ab"[each % 2]) for each in range(4)))
        for number in range(4):
            await it.create(pod(f"web-{number}", spec=spread("zone"), **WEB))
        await it.run_for(3)
        placed = [await it.node_of(f"web-{number}") for number in range(4)]
        assert sorted(name in ("n0", "n2") for name in placed) == [False, False, True, True]


@on_loop
async def test_labels_of_namespaces_count() -> None:
    async with scheduling(controllers=()) as it:
        await it.client.patch_named(NAMESPACES, "default", {"metadata": {"labels": {"team": "ml"}}})
        await it.create(node("n1", zone="a"), node("n2", zone="b"))
        await it.create(pod("first", **WEB))
        apart = far("zone", namespaceSelector={"matchLabels": {"team": "ml"}})
        await it.create(pod("second", spec=apart))
        await it.run_for(2)
        assert {await it.node_of("first"), await it.node_of("second")} == {"n1", "n2"}
