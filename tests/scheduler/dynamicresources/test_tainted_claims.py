"""A taint on a device of a claim that is allocated holds for pods that come later."""

from __future__ import annotations

import pytest

from drakit.base.gates import FeatureGates
from drakit.client import CLAIMS, PODS, TAINT_RULES
from tests.builders.manifests import claim
from tests.builders.podmanifests import resource_slice
from tests.builders.schedulercluster import on_loop
from tests.controllers.eviction import rule, taint_slice
from tests.scheduler.dynamicresources.scenes import devices_of, exactly, message_of, scene, user

RULES = FeatureGates.of({"DRADeviceTaintRules": True})


@on_loop
@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
async def test_a_pod_that_comes_after_the_taint_stays_pending(effect: str) -> None:
    async with scene("d0", gates=RULES) as it:
        await it.create(claim(), user("first"))
        assert await it.node_of("first") == "node-1"
        await it.create(rule(effect, device="d0"))
        await it.create(user("second"))
        assert await it.node_of("second") == ""
        if effect == "NoSchedule":
            told = await message_of(it, "second")
            assert "1 device d0 of resourceclaim default/c has taint example.com/unhealthy:NoSchedule" in told
            assert await it.node_of("first") == "node-1"


@on_loop
async def test_no_execute_does_not_schedule_and_evict_in_a_circle() -> None:
    async with scene("d0", gates=RULES) as it:
        await it.create(claim(), user("first"))
        await it.create(rule("NoExecute", device="d0"))
        for number in range(5):
            await it.create(user(f"next-{number}"))
            await it.run_for(2)
        pods = await it.all(PODS)
        assert [each.spec.node_name for each in pods if each.metadata.name.startswith("next")] == [""] * 5


@on_loop
async def test_when_the_taint_goes_the_pod_is_scheduled() -> None:
    async with scene("d0", gates=RULES) as it:
        await it.create(claim(), user("first"))
        await it.create(rule("NoSchedule", device="d0"))
        await it.create(user("second"))
        await it.delete(TAINT_RULES, "rule")
        await it.run_for(3)
        assert await it.node_of("second") == "node-1"


@on_loop
async def test_a_taint_of_the_slice_counts_like_one_of_a_rule() -> None:
    async with scene("d0") as it:
        await it.create(claim(), user("first"))
        await taint_slice(it, 0, [{"key": "broken", "effect": "NoSchedule"}], name="slice")
        await it.create(user("second"))
        assert await it.node_of("second") == ""


@on_loop
async def test_a_toleration_of_the_allocation_lets_later_pods_in() -> None:
    async with scene("d0", gates=RULES) as it:
        tolerant = exactly(tolerations=[{"operator": "Exists"}])
        await it.create(claim("c", tolerant), user("first"))
        await it.create(rule("NoSchedule", device="d0"))
        await it.create(user("second"))
        assert await it.node_of("second") == "node-1"


@on_loop
async def test_a_tainted_claim_that_nobody_uses_is_allocated_anew() -> None:
    async with scene("d0", gates=RULES) as it:
        await it.create(claim(), user("first"))
        assert await devices_of(it) == ["d0"]
        await it.create(rule("NoSchedule", device="d0"))
        await it.kill_controllers()
        await it.delete(PODS, "first")
        await it.set_status(CLAIMS, "c", {"reservedFor": None})
        await it.create(resource_slice("more", "d1", pool="other"))
        await it.create(user("second"))
        await it.run_for(5)
        assert await it.node_of("second") == "node-1"
        assert await devices_of(it) == ["d1"]
