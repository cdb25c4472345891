"""Why a pod with claims waits, each in its words, and what ends the wait."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from drakit.api import Pod, from_plain
from drakit.base.gates import FeatureGates
from drakit.client import CLAIMS, CLASSES, PODS, SLICES, TAINT_RULES
from drakit.scheduler.framework import CycleState, PluginStatus
from tests.builders.documents import DRIVER
from tests.builders.manifests import claim
from tests.builders.podmanifests import by_template, node, pod, resource_slice, template
from tests.builders.schedulercluster import on_loop
from tests.scheduler.dynamicresources.choosing import Plugins
from tests.scheduler.dynamicresources.scenes import (
    NOT_AVAILABLE,
    Plain,
    devices_of,
    exactly,
    first_of,
    message_of,
    refused,
    scene,
    stored,
    user,
)

NOTHING = "no new claims to deallocate"


def selecting(expression: str) -> Plain:
    return exactly(selectors=[{"cel": {"expression": expression}}])


@on_loop
async def test_a_claim_that_does_not_exist_keeps_the_pod_out_of_the_queue_until_it_comes() -> None:
    async with scene("d0") as it:
        await it.create(user("p"))
        assert await it.condition("p") is None
        assert it.scheduler is not None
        assert it.scheduler.queue.pending()["gated"] == 1
        await it.create(claim())
        assert await it.node_of("p") == "node-1"  # at once: no time has passed


@on_loop
async def test_a_claim_of_a_missing_template_is_awaited() -> None:
    async with scene("d0") as it:
        await it.create(pod("p", claims=[by_template()]))
        assert it.scheduler is not None
        assert it.scheduler.queue.pending()["gated"] == 1
        await it.create(template())
        await it.run_for(60)
        assert await it.node_of("p") == "node-1"


@on_loop
async def test_a_claim_that_is_being_deleted_is_not_used() -> None:
    async with scene("d0") as it:
        made = claim()
        made["metadata"]["finalizers"] = ["example.com/keep"]
        await it.create(made)
        await it.delete(CLAIMS, "c", grace=None)
        await it.create(user("p"))
        assert await it.node_of("p") == ""
        assert it.scheduler is not None
        assert it.scheduler.queue.pending()["gated"] == 1


def generated(name: str, **others: Any) -> Plain:
    """A pod whose claim of a template is said to have that name."""
    made = pod("p", claims=[by_template()], **others)
    made["metadata"]["uid"] = "uid-p"
    if name:
        made["status"] = {"resourceClaimStatuses": [{"name": "g", "resourceClaimName": name}]}
    return made


STRANGE = "ResourceClaim default/strange was not created for Pod default/p"
OUTSIDE: dict[str, tuple[Plain, str]] = {
    "not created yet": (generated(""), 'pod "default/p": ResourceClaim not created yet'),
    "missing": (user("p", "missing"), 'could not find ResourceClaim "default/missing"'),
    "going": (user("p", "going"), 'resourceclaim "going" is being deleted'),
    "of another pod": (generated("strange"), f"{STRANGE} (Pod is not owner)"),
    "of another group": (
        generated("strange", group="pg"),
        f"{STRANGE} (neither Pod nor PodGroup pg is the owner)",
    ),
}


@pytest.mark.parametrize("case", OUTSIDE)
def test_what_keeps_a_pod_out_of_the_queue_is_told_in_the_words_of_kubernetes(case: str) -> None:
    document, words = OUTSIDE[case]

    async def run() -> None:
        plugins = Plugins()
        gates = FeatureGates.of({"GenericWorkload": True, "DRAWorkloadResourceClaims": True})
        async with scene("d0", controllers=(), makers=plugins.makers, gates=gates) as it:
            going = claim("going")
            going["metadata"]["finalizers"] = ["example.com/keep"]
            await it.create(going, claim("strange"))
            await it.delete(CLAIMS, "going", grace=None)
            read = from_plain(Pod, document)
            (plugin,) = plugins.made
            assert plugin.pre_enqueue(read) == PluginStatus.unresolvable(words)
            status, _ = plugin.pre_filter(CycleState(read), read)
            assert status == PluginStatus.unresolvable(words)

    on_loop(run)()


def test_what_keeps_a_pod_out_of_the_queue_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with scene("d0", controllers=()) as it:
            await it.create(user("p", "missing"))

    caplog.set_level(logging.DEBUG, "drakit.scheduler")
    on_loop(run)()
    why = 'DynamicResources: could not find ResourceClaim "default/missing"'
    assert f"pod default/p may not enter the queue: {why}" in caplog.messages


@on_loop
async def test_a_missing_class_is_named() -> None:
    async with scene("d0") as it:
        await it.create(claim("c", {"name": "r", "exactly": {"deviceClassName": "missing"}}), user("p"))
        told = refused("request r: device class missing does not exist", NOTHING)
        assert (await message_of(it, "p")).startswith(told)


@on_loop
async def test_a_missing_class_of_an_alternative_is_named() -> None:
    async with scene("d0") as it:
        wanted = first_of("r", a=1)
        wanted["firstAvailable"][0]["deviceClassName"] = "missing"
        await it.create(claim("c", wanted), user("p"))
        told = refused("request r/a: device class missing does not exist", NOTHING)
        assert (await message_of(it, "p")).startswith(told)


@on_loop
async def test_no_device_anywhere() -> None:
    async with scene() as it:
        await it.create(node("node-2"), claim(), user("p"))
        assert (await message_of(it, "p")).startswith(refused("2 cannot allocate all claims", nodes=2))
        await it.create(resource_slice("s", "d0", node="node-2"))
        await it.run_for(3)
        assert await it.node_of("p") == "node-2"


@on_loop
async def test_a_selector_that_fails_ends_the_attempt_and_is_tried_again_after_a_while() -> None:
    async with scene("d0") as it:
        await it.create(claim("c", selecting(f'device.attributes["{DRIVER}"].nope == "x"')), user("p"))
        words = "claim default/c: selector #0: CEL runtime error: no such key: nope"
        condition = await it.condition("p")
        assert condition is not None
        assert condition.reason == "SchedulerError"
        assert condition.message == f'running "DynamicResources" filter plugin: {words}'


@on_loop
async def test_a_selector_of_a_class_that_fails_names_the_class() -> None:
    async with scene("d0") as it:
        broken = {"cel": {"expression": 'device.attributes["a.b"].c == 1'}}
        await it.client.patch(await it.client.get(CLASSES, "gpu.example.com"), {"spec": {"selectors": [broken]}})
        await it.create(claim(), user("p"))
        words = "class gpu.example.com: selector #0: CEL runtime error: no such key: c"
        assert await message_of(it, "p") == f'running "DynamicResources" filter plugin: {words}'


@on_loop
async def test_more_devices_than_a_claim_can_hold_end_the_attempt() -> None:
    async with scene(*(f"d{n}" for n in range(33))) as it:
        await it.create(claim("c", exactly(allocationMode="All")), user("p"))
        words = "claim default/c: number of requested devices 33 exceeds the claim limit of 32"
        assert await message_of(it, "p") == f'running "DynamicResources" filter plugin: {words}'


@on_loop
async def test_all_devices_of_an_incomplete_pool_refuse_that_node_only() -> None:
    async with scene() as it:
        await it.create(resource_slice("s", "d0", pool="x", count=2))
        await it.create(claim("c", exactly(allocationMode="All")), user("p"))
        words = "claim default/c, request r: asks for all devices, but resource pool gpu.example.com/x"
        assert (await message_of(it, "p")).startswith(refused(f"1 {words} is currently being updated"))
        await it.create(node("node-2"), resource_slice("t", "d0", pool="y", node="node-2"))
        await it.run_for(3)
        assert await it.node_of("p") == "node-2"


@on_loop
async def test_a_claim_in_use_on_another_node_refuses_this_one() -> None:
    async with scene("d0") as it:
        await it.create(node("node-2", zone="b"), claim(), user("p"))
        await it.create(user("q", spec={"nodeSelector": {"zone": "b"}}))
        told = refused(f"1 node(s) didn't match Pod's node affinity/selector, 1 {NOT_AVAILABLE}", nodes=2)
        assert (await message_of(it, "q")).startswith(told)
        assert await devices_of(it) == ["d0"]


@on_loop
async def test_an_alternative_is_refused_where_the_gate_is_off() -> None:
    async with scene("d0") as it:
        await it.create(claim("c", first_of("r", a=1)))
        await it.kill_scheduler()
        await it.start_scheduler(gates=FeatureGates.of({"DRAPrioritizedList": False}))
        await it.create(user("p"))
        words = "resource claim default/c, request r: has subrequests, but the DRAPrioritizedList feature is disabled"
        assert (await message_of(it, "p")).startswith(refused(words, NOTHING))


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_a_device_that_a_rule_taints_is_not_given_until_the_rule_goes(effect: str) -> None:
    async def run() -> None:
        async with scene("d0", gates=FeatureGates.of({"DRADeviceTaintRules": True})) as it:
            taint = {"key": "k", "effect": effect}
            rule = {"deviceSelector": {"driver": DRIVER}, "taint": taint}
            head = {"apiVersion": "resource.k8s.io/v1beta2", "kind": "DeviceTaintRule", "metadata": {"name": "r"}}
            await it.create({**head, "spec": rule}, claim(), user("p"))
            assert (await message_of(it, "p")).startswith(refused("1 cannot allocate all claims"))
            await it.delete(TAINT_RULES, "r")
            await it.run_for(3)
            assert await it.node_of("p") == "node-1"

    on_loop(run)()


@on_loop
async def test_a_pod_is_refused_a_claim_of_a_template_that_was_made_for_another() -> None:
    async with scene("d0", "d1", controllers=()) as it:
        await it.create(template(), pod("q"), claim("stolen"), pod("p", claims=[by_template()]))
        statuses = {"resourceClaimStatuses": [{"name": "g", "resourceClaimName": "stolen"}]}
        await it.set_status(PODS, "p", statuses)
        await it.run_for(10)
        assert await it.node_of("p") == ""
        assert (await stored(it, "stolen")).status.allocation is None


@on_loop
async def test_a_slice_that_goes_takes_its_devices_with_it() -> None:
    async with scene("d0") as it:
        await it.delete(SLICES, "slice")
        await it.create(claim(), user("p"))
        assert (await message_of(it, "p")).startswith(refused("1 cannot allocate all claims"))
