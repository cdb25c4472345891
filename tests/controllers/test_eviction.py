"""Pods leave tainted devices."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from drakit.api.exchange import Request, Response
from drakit.base.gates import FeatureGates
from drakit.client import CLAIMS, CLASSES, EVENTS, POD_GROUPS, PODS, SLICES, TAINT_RULES
from drakit.controllers.context import ControllerContext
from drakit.controllers.eviction import DeviceTaintEviction
from tests.builders.cluster import Cluster, cluster, on_loop
from tests.builders.documents import DRIVER, Plain
from tests.builders.manifests import (
    allocation,
    by_name,
    by_template,
    claim,
    consumer,
    device_class,
    pod,
    pod_group,
    resource_slice,
)
from tests.controllers.eviction import KEY, rule, taint_slice, user

MAKERS = (DeviceTaintEviction,)


@asynccontextmanager
async def running(gates: FeatureGates | None = None) -> AsyncIterator[Cluster]:
    async with cluster(gates) as made:
        await made.start(MAKERS)
        await made.create(device_class(), resource_slice("s", "d0", "d1", "d2"))
        yield made


async def is_evicted(it: Cluster, name: str) -> bool:
    found = await it.find(PODS, name)
    return found is None or found.metadata.deletion_timestamp is not None


async def condition(it: Cluster, name: str = "rule") -> Any:
    [found] = (await it.find(TAINT_RULES, name)).status.conditions
    return found


@on_loop
async def test_a_taint_in_a_slice_evicts_the_pod_of_that_device_with_event_and_condition() -> None:
    async with running() as it:
        await user(it, "p")
        await user(it, "q", device="d1")
        await taint_slice(it, 0, [{"key": KEY, "effect": "NoExecute"}])
        assert await is_evicted(it, "p")
        assert not await is_evicted(it, "q")
        [event] = await it.all(EVENTS)
        assert (event.involved_object.name, event.reason, event.message, event.source.component) == (
            "p", "DeviceTaintManagerEviction", "Marking for deletion", "device-taint-eviction-controller",
        )  # fmt: skip
        told = {each.type: (each.status, each.reason) for each in (await it.find(PODS, "p")).status.conditions}
        assert told["DisruptionTarget"] == ("True", "DeletionByDeviceTaintManager")


@pytest.mark.parametrize("effect", ["NoSchedule", "None"])
@on_loop
async def test_other_effects_evict_nobody(effect: str) -> None:
    async with running() as it:
        await user(it, "p")
        await taint_slice(it, 0, [{"key": KEY, "effect": effect}])
        await it.create(rule(effect, driver=DRIVER))
        await it.run_for(60)
        assert not await is_evicted(it, "p")


@pytest.mark.parametrize(
    "selector",
    [
        {"driver": DRIVER},
        {"pool": "pool"},
        {"device": "d0"},
        {"deviceClassName": "gpu.example.com"},
        {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
    ],
)
@on_loop
async def test_a_rule_evicts_by_driver_pool_device_class_or_expression(selector: Plain) -> None:
    async with running() as it:
        await user(it, "p")
        await it.create(rule(**selector))
        assert await is_evicted(it, "p")


@pytest.mark.parametrize(
    "selector",
    [
        {},
        {"driver": "other.example.com"},
        {"driver": DRIVER, "pool": "other"},
        {"driver": DRIVER, "device": "d1"},
        {"deviceClassName": "missing.example.com"},
        {"selectors": [{"cel": {"expression": 'device.driver == "other.example.com"'}}]},
    ],
)
@on_loop
async def test_a_rule_without_a_selector_or_for_something_else_evicts_nobody(selector: Plain) -> None:
    async with running() as it:
        await user(it, "p")
        await it.create(rule(**selector))
        await it.run_for(20)
        assert not await is_evicted(it, "p")
        assert (await condition(it)).reason == "NotStarted"


@on_loop
async def test_a_class_that_comes_later_brings_its_rules_to_life() -> None:
    async with running() as it:
        await user(it, "p")
        await it.create(rule(deviceClassName="late.example.com"))
        assert not await is_evicted(it, "p")
        await it.create(device_class("late.example.com"))
        assert await is_evicted(it, "p")
        assert await it.find(CLASSES, "late.example.com") is not None


@on_loop
async def test_who_tolerates_the_taint_stays() -> None:
    async with running() as it:
        await user(it, "p", tolerations=[{"key": KEY, "operator": "Exists", "effect": "NoExecute"}])
        await user(it, "q", device="d1", tolerations=[{"key": "example.com/else", "operator": "Exists"}])
        await it.create(rule(driver=DRIVER))
        await it.run_for(600)
        assert not await is_evicted(it, "p")
        assert await is_evicted(it, "q")


@on_loop
async def test_seconds_of_toleration_count_from_the_time_of_the_taint() -> None:
    async with running() as it:
        await user(it, "p", tolerations=[{"key": KEY, "operator": "Exists", "tolerationSeconds": 30}])
        await it.create(rule(driver=DRIVER))
        await it.run_for(20)
        await it.kill()
        await it.run_for(5)
        await it.start(MAKERS)
        await it.run_for(4)
        assert not await is_evicted(it, "p")
        await it.run_for(2)
        assert await is_evicted(it, "p")


@on_loop
async def test_more_seconds_than_a_calendar_has_are_tolerated_and_others_are_evicted_all_the_same() -> None:
    async with running() as it:
        await user(it, "p", tolerations=[{"key": KEY, "operator": "Exists", "tolerationSeconds": 2**63 - 1}])
        await user(it, "q", device="d1")
        await it.create(rule(driver=DRIVER))
        await it.run_for(600)
        assert not await is_evicted(it, "p")
        assert await is_evicted(it, "q")
        told = await condition(it)
        assert told.message == "1 pod needs to be evicted in 1 namespace. 1 pod evicted since starting the controller."


@on_loop
async def test_who_tolerates_a_taint_for_ever_and_for_a_while_tolerates_it_for_ever() -> None:
    async with running() as it:
        limited = {"key": KEY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}
        await user(it, "p", tolerations=[limited, {"operator": "Exists", "effect": "NoExecute"}])
        await it.create(rule(driver=DRIVER))
        await it.run_for(600)
        assert not await is_evicted(it, "p")


@on_loop
async def test_a_taint_that_goes_before_the_time_is_up_evicts_nobody() -> None:
    async with running() as it:
        await user(it, "p", tolerations=[{"key": KEY, "operator": "Exists", "tolerationSeconds": 30}])
        await taint_slice(it, 0, [{"key": KEY, "effect": "NoExecute"}])
        await it.create(rule(driver=DRIVER))
        await it.run_for(20)
        await taint_slice(it, 0, [])
        await it.delete(TAINT_RULES, "rule", grace=None)
        await it.run_for(60)
        assert not await is_evicted(it, "p")


@on_loop
async def test_a_rule_reaches_a_device_that_is_published_no_more() -> None:
    async with running() as it:
        await user(it, "p")
        await it.delete(SLICES, "s", grace=None)
        await it.create(rule(driver=DRIVER))
        assert await is_evicted(it, "p")


@on_loop
async def test_pods_that_use_a_claim_of_extended_resources_or_of_their_group_go_too() -> None:
    async with running() as it:
        special = pod("p", node="node-1")
        special["spec"]["containers"][0]["resources"] = {"limits": {"example.com/gpu": "1"}}
        await it.create(claim("special"), special)
        mapping = {"containerName": "ctr", "resourceName": "example.com/gpu", "requestName": "r"}
        status = {"extendedResourceClaimStatus": {"resourceClaimName": "special", "requestMappings": [mapping]}}
        await it.set_status(PODS, "p", status)
        await it.create(pod_group("pg", [by_template()]), claim("shared"))
        await it.create(pod("q", claims=[by_template()], group="pg", node="node-1"))
        await it.set_status(PODS, "q", {"resourceClaimStatuses": [{"name": "g", "resourceClaimName": "shared"}]})
        users = {"special": await it.find(PODS, "p"), "shared": await it.find(POD_GROUPS, "pg")}
        for name, owner in users.items():
            await it.set_status(CLAIMS, name, {"allocation": allocation(), "reservedFor": [consumer(owner)]})
        await it.create(rule(driver=DRIVER))
        assert await is_evicted(it, "p")
        assert await is_evicted(it, "q")


@on_loop
async def test_pods_without_a_node_or_a_reservation_are_left_alone() -> None:
    async with running() as it:
        await it.create(claim("c"), pod("p", claims=[by_name("c")]), pod("q", claims=[by_name("c")], node="node-1"))
        users = [consumer(await it.find(PODS, "p"))]
        await it.set_status(CLAIMS, "c", {"allocation": allocation(), "reservedFor": users})
        await it.create(rule(driver=DRIVER))
        await it.run_for(20)
        assert not await is_evicted(it, "p")
        assert not await is_evicted(it, "q")


@on_loop
async def test_that_no_pod_is_to_be_evicted_is_told_after_some_seconds() -> None:
    async with running() as it:
        await it.create(rule(driver=DRIVER))
        assert (await it.find(TAINT_RULES, "rule")).status.conditions == ()
        await it.run_for(6)
        told = await condition(it)
        assert (told.status, told.reason) == ("False", "NotStarted")


@on_loop
async def test_the_condition_comes_at_once_and_counts_after_some_seconds() -> None:
    async with running() as it:
        await user(it, "p")
        await user(it, "q", device="d1", tolerations=[{"operator": "Exists", "tolerationSeconds": 60}])
        await it.create(rule(driver=DRIVER))
        assert await is_evicted(it, "p")
        assert (await condition(it)).status == "True"
        await it.run_for(6)
        told = await condition(it)
        assert (told.type, told.status, told.reason, told.observed_generation) == (
            "EvictionInProgress", "True", "PodsPendingEviction", 1,
        )  # fmt: skip
        assert told.message == (
            "1 pod needs to be evicted in 1 namespace. 1 pod evicted since starting the controller."
        )
        await it.run_for(70)
        told = await condition(it)
        assert (told.status, told.reason) == ("False", "Completed")
        assert told.message == "2 pods evicted since starting the controller."


@on_loop
async def test_a_restart_neither_shortens_nor_prolongs_a_toleration_and_the_condition_is_completed() -> None:
    async with running() as it:
        await user(it, "p", tolerations=[{"operator": "Exists", "tolerationSeconds": 60}])
        await it.create(rule(driver=DRIVER))
        await it.run_for(40)
        assert (await condition(it)).status == "True"
        await it.kill()
        await it.run_for(10)
        await it.start(MAKERS)
        await it.run_for(8)
        assert not await is_evicted(it, "p")
        await it.run_for(3)
        assert await is_evicted(it, "p")
        await it.run_for(40)
        told = await condition(it)
        assert (told.status, told.reason) == ("False", "Completed")
        assert told.message == "1 pod evicted since starting the controller."


@on_loop
async def test_effect_none_tells_once_what_would_happen() -> None:
    async with running() as it:
        await user(it, "p")
        await it.create(rule("None", driver=DRIVER))
        await it.run_for(6)
        told = await condition(it)
        assert (told.status, told.reason) == ("False", "NoEffect")
        assert told.message == (
            "3 published devices selected. 1 allocated device selected. "
            "1 pod would be evicted in 1 namespace if the effect was NoExecute. "
            "This information will not be updated again. Recreate the DeviceTaintRule to trigger an update."
        )
        await user(it, "q", device="d1")
        await it.run_for(60)
        assert await condition(it) == told
        assert not await is_evicted(it, "p")


@on_loop
async def test_a_rule_whose_effect_becomes_noexecute_evicts() -> None:
    async with running() as it:
        await user(it, "p")
        made = await it.create(rule("NoSchedule", driver=DRIVER))
        await it.run_for(6)
        assert (await condition(it)).reason == "OtherEffect"
        assert (await condition(it)).message == "Eviction only happens for the NoExecute effect."
        await it.client.patch_named(TAINT_RULES, made.metadata.name, {"spec": {"taint": {"effect": "NoExecute"}}})
        await it.settle()
        assert await is_evicted(it, "p")


@on_loop
async def test_evictions_are_limited_in_rate_and_counted() -> None:
    async with cluster() as it:
        await it.create(device_class(), resource_slice("s", *(f"d{number}" for number in range(6))))
        for number in range(6):
            await user(it, f"p{number}", device=f"d{number}")
        made = await it.start((partial(DeviceTaintEviction, per_second=1.0, burst=2),))
        await it.create(rule(driver=DRIVER))
        gone = [await is_evicted(it, f"p{number}") for number in range(6)]
        assert sum(gone) == 2
        await it.run_for(2.5)
        assert sum([await is_evicted(it, f"p{number}") for number in range(6)]) == 4
        await it.run_for(10)
        sample = made.registry.get_sample_value
        assert sample("device_taint_eviction_controller_pod_deletions_total") == 6
        assert sample("device_taint_eviction_controller_pod_deletion_duration_seconds_count") == 6


@on_loop
async def test_a_pod_that_is_gone_before_the_answer_comes_is_forgotten() -> None:
    async with cluster() as it:
        made: list[DeviceTaintEviction] = []

        def make(setting: ControllerContext) -> DeviceTaintEviction:
            made.append(DeviceTaintEviction(setting))
            return made[-1]

        async def slow(request: Request) -> Response:
            response = await handle(request)
            for _ in range(100 if request.method == "DELETE" else 0):
                await asyncio.sleep(0)
            return response

        handle, it.server.handle = it.server.handle, slow  # type: ignore[method-assign]
        await it.start((make,))
        await it.create(device_class(), resource_slice("s", "d0"), claim("p-claim"))
        document = pod("p", claims=[by_name("p-claim")], node="node-1")
        document["spec"]["terminationGracePeriodSeconds"] = 0
        await it.create(document)
        users = [consumer(await it.find(PODS, "p"))]
        await it.set_status(CLAIMS, "p-claim", {"allocation": allocation(), "reservedFor": users})
        await it.create(rule(driver=DRIVER))
        assert await it.find(PODS, "p") is None
        assert made[0]._going == set()


@on_loop
async def test_rules_do_nothing_while_their_gate_is_off() -> None:
    async with running(FeatureGates.defaults()) as it:
        await user(it, "p")
        await taint_slice(it, 0, [{"key": KEY, "effect": "NoExecute"}])
        assert await is_evicted(it, "p")


@on_loop
async def test_nobody_is_evicted_while_taints_are_off() -> None:
    gates = FeatureGates.parse("DRADeviceTaints=false")
    async with running(gates) as it:
        await user(it, "p")
        await taint_slice(it, 0, [{"key": KEY, "effect": "NoExecute"}])
        await it.run_for(20)
        assert not await is_evicted(it, "p")
