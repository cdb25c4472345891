"""Slices on a server: published, kept, repaired, removed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from random import Random

import msgspec
import pytest

from drakit.api import (
    Device,
    DeviceAttribute,
    DeviceTaint,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ResourceSlice,
    to_plain,
)
from drakit.api.exchange import Response, StatusContent
from drakit.apiserver import Settings
from drakit.base import status
from drakit.base.errors import InvalidObject
from drakit.base.gates import FeatureGates
from drakit.client import NODES, SLICES, Client, ConnectionFailed, InProcess
from drakit.driverkit import DevicePool, KubeletPlugin
from tests.driverkit.moods import Moody, refusal
from tests.driverkit.node import HastyClock, LedNode, Leds, led_node, led_plugin, on_loop

RACK = NodeSelector(
    node_selector_terms=(
        NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key="rack", operator="In", values=("a",)),)),
    )
)


async def names(node: LedNode) -> list[str]:
    return [device.name for each in await node.slices() for device in each.spec.devices]


@asynccontextmanager
async def publishing(driver: Leds | None = None) -> AsyncIterator[tuple[LedNode, KubeletPlugin, Leds]]:
    async with led_node() as node:
        driver = driver or Leds()
        async with node.plugin(driver).running(sockets=False) as plugin:
            await node.until(node.slices)
            yield node, plugin, driver


@on_loop
async def test_devices_are_published_with_the_node_as_owner() -> None:
    async with led_plugin() as (node, plugin, _):
        await plugin.publish()
        (found,) = await node.slices()
        owner = await node.client.get(NODES, "node-1")
        assert found.metadata.name.startswith("00000-leds.example.com-node-1-")
        assert [each.uid for each in found.metadata.owner_references] == [owner.view.metadata.uid]
        assert await names(node) == ["led-0", "led-1", "led-2", "led-3"]
        assert not await plugin.publish()


@on_loop
async def test_devices_may_be_yaml() -> None:
    async with led_plugin() as (node, plugin, driver):
        driver.published = "- name: led-9\n  attributes:\n    model: {string: x}\n"
        await plugin.publish()
        assert await names(node) == ["led-9"]


@on_loop
async def test_a_restart_with_the_same_devices_writes_nothing() -> None:
    async with led_plugin() as (node, plugin, driver):
        sick = DeviceTaint(key="sick", effect="NoSchedule")
        driver.published = [Device(name="led-0", taints=(sick,))]
        await plugin.publish()
        again = node.plugin(driver)
        assert not await again.publish()


@on_loop
async def test_a_change_is_published_when_the_driver_says_so() -> None:
    async with publishing() as (node, _, driver):
        driver.published = [Device(name="led-7")]
        driver.changed()
        await node.until(lambda: _is(node, ["led-7"]))


async def _is(node: LedNode, wanted: list[str]) -> bool:
    return await names(node) == wanted


@on_loop
async def test_an_edit_is_put_back_at_once() -> None:
    async with publishing() as (node, _, __):
        (found,) = await node.slices()
        await node.client.update(
            msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, devices=(Device(name="fake"),)))
        )
        await node.until(lambda: _is(node, ["led-0", "led-1", "led-2", "led-3"]))


@on_loop
async def test_deleted_slices_come_back_at_once() -> None:
    """The helper in Go leaves the node without slices for half a minute or more."""
    async with publishing() as (node, _, __):
        for found in await node.slices():
            await node.client.delete(SLICES, found.metadata.name)
        await node.until(node.slices)


@on_loop
async def test_a_foreign_slice_is_removed() -> None:
    async with publishing() as (node, _, __):
        (found,) = await node.slices()
        pool = msgspec.structs.replace(found.spec.pool, name="other", generation=7)
        spec = msgspec.structs.replace(found.spec, pool=pool)
        await node.client.create(ResourceSlice(metadata=type(found.metadata)(name="foreign"), spec=spec))
        await node.until(lambda: _gone(node, "foreign"))
        assert len(await node.slices()) == 1


async def _gone(node: LedNode, name: str) -> bool:
    return await node.client.find(SLICES, name) is None


@on_loop
async def test_slices_of_other_nodes_and_drivers_are_left_alone() -> None:
    async with led_plugin() as (node, plugin, _):
        await plugin.publish()
        (found,) = await node.slices()
        for name, change in (("a", {"node_name": "node-2"}), ("b", {"driver": "other.example.com"})):
            spec = msgspec.structs.replace(found.spec, **change)
            await node.client.create(ResourceSlice(metadata=type(found.metadata)(name=name), spec=spec))
        assert not await plugin.publish()
        await plugin.publisher.remove()
        assert [each.metadata.name for each in await node.slices()] == ["a", "b"]


@on_loop
async def test_a_node_that_was_made_anew_becomes_the_owner() -> None:
    async with led_plugin() as (node, plugin, _):
        await plugin.publish()
        await node.client.delete(NODES, "node-1")
        made = await node.client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}})
        for found in await node.slices():  # as the garbage collector does
            await node.client.delete(SLICES, found.metadata.name)
        await plugin.publish()
        (found,) = await node.slices()
        assert found.metadata.owner_references[0].uid == made.view.metadata.uid


@on_loop
async def test_slices_stay_when_the_driver_stops_unless_told_otherwise() -> None:
    async with led_node() as node:
        async with node.plugin(Leds()).running(sockets=False):
            await node.until(node.slices)
        assert len(await node.slices()) == 1
        settings = node.settings(remove_slices_on_exit=True)
        async with KubeletPlugin(Leds(), node.client, settings, boot_id="b").running(sockets=False):
            pass
        assert await node.slices() == []


@on_loop
async def test_pools_that_other_nodes_reach() -> None:
    async with led_plugin() as (node, plugin, driver):
        driver.published = [
            DevicePool(name="rack-a", devices=(Device(name="x"),), node_selector=RACK),
            DevicePool(name="everywhere", devices=(Device(name="y"),), all_nodes=True),
            DevicePool(name="mixed", devices=(Device(name="z", node_name="node-1"), Device(name="w", all_nodes=True))),
            DevicePool(devices=(Device(name="own"),)),
        ]
        await plugin.publish()
        found = {each.spec.pool.name: each for each in await node.slices()}
        assert found["rack-a"].spec.node_selector == RACK
        assert found["everywhere"].spec.all_nodes
        assert found["mixed"].spec.per_device_node_selection
        assert found["node-1"].spec.node_name == "node-1"
        assert found["rack-a"].metadata.owner_references == ()
        driver.published = [DevicePool(devices=(Device(name="own"),))]
        await plugin.publish()
        assert [each.spec.pool.name for each in await node.slices()] == ["node-1"]


@on_loop
async def test_a_shared_pool_that_is_gone_after_a_restart_is_removed() -> None:
    async with led_plugin() as (node, plugin, driver):
        driver.published = [DevicePool(name="rack-a", devices=(Device(name="x"),), all_nodes=True)]
        await plugin.publish()
        await node.client.create(
            {
                **to_plain((await node.slices())[0]),
                "metadata": {"name": "of-somebody-else"},
                "spec": {**to_plain((await node.slices())[0].spec), "pool": _POOL},
            }
        )
        driver.published = [Device(name="own")]
        await node.plugin(driver).publish()
        assert [each.spec.pool.name for each in await node.slices()] == ["node-1", "rack-b"]


_POOL = {"name": "rack-b", "generation": 1, "resourceSliceCount": 1}

EVERYTHING = """
pools:
- name: cards
  allNodes: true
  sharedCounters:
  - name: card-0
    counters: {memory: {value: 80Gi}}
  devices:
  - name: card-0
    consumesCounters:
    - {counterSet: card-0, counters: {memory: {value: 80Gi}}}
  - name: part-0
    consumesCounters:
    - {counterSet: card-0, counters: {memory: {value: 10Gi}}}
- devices:
  - name: nic-0
    attributes:
      models: {strings: [a, b]}
      speed: {int: 100}
      firmware: {version: 1.2.3}
      link: {bool: true}
    allowMultipleAllocations: true
    capacity:
      bandwidth:
        value: 100Gi
        requestPolicy: {default: 1Gi, validRange: {min: 1Gi, step: 1Gi}}
    bindsToNode: true
    bindingConditions: [Attached]
    bindingFailureConditions: [AttachFailed]
    taints:
    - {key: slow, effect: NoSchedule}
  - name: cpus
    allowMultipleAllocations: true
    capacity: {cores: {value: "8"}}
    nodeAllocatableResourceMappings: {cpu: {capacityKey: cores}}
- name: spread
  devices:
  - {name: here, nodeName: node-1}
  - name: there
    nodeSelector:
      nodeSelectorTerms:
      - matchExpressions: [{key: zone, operator: In, values: [a]}]
"""


@on_loop
async def test_every_field_of_the_api_is_published_and_a_restart_writes_none_of_it_again() -> None:
    gates = FeatureGates.all_on()
    async with led_node(settings=Settings(random=Random(7), gates=gates)) as node:
        driver = Leds()
        driver.published = EVERYTHING
        plugin = node.plugin(driver)
        assert len((await plugin.publish()).create) == 4
        assert plugin.publisher.dropped == set()
        assert not await plugin.publish()
        assert not await node.plugin(driver).publish()


@on_loop
async def test_the_next_instance_publishes_when_the_one_before_has_ended() -> None:
    async with led_node() as node:
        newer = Leds(6)
        async with AsyncExitStack() as stack:
            async with node.plugin(Leds(4), clock=HastyClock()).running(sockets=False):
                await node.until(node.slices)
                await stack.enter_async_context(node.plugin(newer, clock=HastyClock()).running(sockets=False))
                await asyncio.sleep(0.1)
                assert len(await names(node)) == 4
            await node.until(lambda: _is(node, [f"led-{number}" for number in range(6)]))


@on_loop
async def test_who_keeps_editing_is_answered_later_each_time() -> None:
    async with publishing() as (node, plugin, _):
        pauses = []
        for number in range(4):
            (found,) = await node.slices()
            spec = msgspec.structs.replace(found.spec, devices=(Device(name=f"fake-{number}"),))
            await node.client.update(msgspec.structs.replace(found, spec=spec))
            plugin.publisher._no_repair_before = 0.0
            plugin.publisher.trigger()
            await node.until(lambda: _is(node, ["led-0", "led-1", "led-2", "led-3"]))
            await node.until(lambda: _so(plugin.publisher._no_repair_before > 0))
            pauses.append(plugin.publisher._no_repair_before - plugin.clock.monotonic())
        assert pauses[0] <= 0 < pauses[1] < pauses[3]


# What keeps slices from being published


@on_loop
async def test_what_the_server_would_refuse_is_told_first_with_its_path() -> None:
    async with led_plugin() as (node, plugin, driver):
        driver.published = [Device(name="led-0"), Device(name="LED", attributes={"a": DeviceAttribute()})]
        with pytest.raises(InvalidObject) as caught:
            await plugin.publish()
        assert [str(error).partition(":")[0] for error in caught.value.errors] == [
            "spec.devices[1].name",
            "spec.devices[1].attributes[a]",
        ]
        assert await node.slices() == []


@on_loop
async def test_a_device_twice_in_a_pool_of_many_slices_is_told() -> None:
    async with led_plugin() as (_, plugin, driver):
        driver.published = [*(Device(name=f"led-{number}") for number in range(200)), Device(name="led-0")]
        with pytest.raises(InvalidObject, match=r'spec\.devices: Duplicate value: "led-0"'):
            await plugin.publish()


def test_fields_that_the_server_does_not_keep_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    @on_loop
    async def run() -> None:
        gates = FeatureGates.parse("DRADeviceTaints=false,DRADeviceTaintRules=false")
        async with led_node(settings=Settings(random=Random(7), gates=gates)) as node:
            driver = Leds()
            driver.published = [Device(name="led-0", taints=(DeviceTaint(key="sick", effect="NoSchedule"),))]
            plugin = node.plugin(driver)
            await plugin.publish()
            assert plugin.publisher.dropped == {"spec.devices[].taints"}
            assert not await plugin.publish()

    with caplog.at_level(logging.WARNING):
        run()
    assert caplog.text.count("the server does not keep spec.devices[].taints") == 1


@pytest.mark.parametrize(
    "answer",
    [
        refusal(403, "Forbidden"),
        Response(code=404, content=StatusContent(status.not_found("resourceslices", "resource.k8s.io", "gone"))),
        refusal(409, "Conflict"),
        refusal(429, "TooManyRequests"),
        refusal(500, "InternalError"),
        ConnectionFailed("nobody answers", sent=False),
    ],
    ids=["403", "404", "409", "429", "500", "nothing"],
)
def test_a_server_that_refuses_or_is_away_is_asked_again_and_prepare_does_not_wait(
    answer: Response | Exception,
) -> None:
    @on_loop
    async def run() -> None:
        async with led_node() as node:
            ref = await node.claim()
            moody = Moody(node)
            moody.mood = lambda request: answer if "resourceslices" in request.path else None
            client = Client(InProcess(moody))
            async with client, node.plugin(Leds(), client=client).running(sockets=False) as plugin:
                await node.until(lambda: _so(moody.refused >= 2))
                assert (await plugin.prepare([ref]))[ref.uid].error == ""
                moody.mood = lambda _: None
                await node.until(node.slices)

    run()


async def _so(value: bool) -> bool:
    return value


@on_loop
async def test_a_driver_that_cannot_say_what_it_has_is_asked_again() -> None:
    class Shy(Leds):
        shy = True

        def devices(self) -> list[Device]:
            if self.shy:
                raise OSError("no bus")
            return [Device(name="led-0")]

    async with led_node() as node:
        driver = Shy()
        async with node.plugin(driver).running(sockets=False) as plugin:
            await node.until(lambda: _so("no bus" in plugin.publisher.problem))
            ref = await node.claim()
            assert "cannot say which devices it has: no bus" in (await plugin.prepare([ref]))[ref.uid].error
            driver.shy = False
            await node.until(node.slices)
            assert (await plugin.prepare([ref]))[ref.uid].error == ""
