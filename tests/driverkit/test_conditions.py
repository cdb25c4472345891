"""What drivers say in the status of claims."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from drakit.api import AllocatedDeviceStatus, Condition, NetworkDeviceData, find_condition
from drakit.apiserver import Settings
from drakit.client import CLAIMS
from drakit.driverkit import AllocatedClaim, AllocatedDevice, BindingFailed, PreparedDevice
from drakit.driverkit.claims import allocated_claim
from drakit.driverkit.conditions import apply_status, device_status, set_binding_conditions
from tests.driverkit.node import DRIVER, LedNode, Leds, led_node, on_loop

NETWORK = NetworkDeviceData(interface_name="net1", ips=("10.0.0.1/24",), hardware_address="02:00:00:00:00:01")
READY = Condition(type="Ready", status="True", reason="Lit", message="shines")


class Told(Leds):
    def switch_on(self, claim: AllocatedClaim) -> Sequence[PreparedDevice]:
        return [each.ready(conditions=(READY,), network_data=NETWORK, data={"watts": 3}) for each in claim.devices]


async def statuses(node: LedNode) -> tuple[AllocatedDeviceStatus, ...]:
    claim = await node.client.get(CLAIMS, "blink", namespace="default")
    return claim.status.devices


@on_loop
async def test_conditions_and_data_of_prepared_devices_come_to_the_claim() -> None:
    async with led_node() as node, node.plugin(Told()).running(sockets=False) as plugin:
        ref = await node.claim()
        await plugin.prepare([ref])
        await node.until(lambda: statuses(node))
        (found,) = await statuses(node)
        assert (found.driver, found.pool, found.device) == (DRIVER, "node-1", "led-0")
        assert (found.network_data, found.data) == (NETWORK, {"watts": 3})
        assert found.conditions[0].reason == "Lit"
        assert found.conditions[0].last_transition_time


@on_loop
async def test_what_was_not_told_before_the_end_is_told_after_the_next_start() -> None:
    async with led_node() as node:
        ref = await node.claim()
        plugin = node.plugin(Told())
        await plugin.start()
        await plugin.prepare([ref])
        assert await statuses(node) == ()
        async with node.plugin(Told()).running(sockets=False):
            await node.until(lambda: statuses(node))


@on_loop
async def test_one_device_is_told_of_without_forgetting_the_other() -> None:
    async with led_node() as node:
        ref = await node.claim("blink", "led-0", "led-1")
        claim = await node.client.get(CLAIMS, "blink", namespace="default")
        first, second = allocated_claim(claim, DRIVER, ()).devices
        await apply_status(node.client, DRIVER, ref, [device_status(DRIVER, first, conditions=[READY])])
        await apply_status(node.client, DRIVER, ref, [device_status(DRIVER, second, data={"a": 1})])
        await apply_status(node.client, DRIVER, ref, [device_status(DRIVER, first, data={"b": 2})])
        told = {each.device: (len(each.conditions), each.data) for each in await statuses(node)}
        assert told == {"led-0": (1, {"b": 2}), "led-1": (0, {"a": 1})}


@on_loop
async def test_a_claim_that_is_gone_or_replaced_is_told_nothing() -> None:
    async with led_node() as node:
        ref = await node.claim()
        device = AllocatedDevice(request="led", pool="node-1", device="led-0")
        entry = device_status(DRIVER, device, conditions=[READY])
        other = type(ref)(namespace=ref.namespace, name=ref.name, uid="another")
        assert await apply_status(node.client, DRIVER, other, [entry]) is None
        missing = type(ref)(namespace=ref.namespace, name="missing", uid="another")
        assert await apply_status(node.client, DRIVER, missing, [entry]) is None
        assert await statuses(node) == ()


@on_loop
async def test_the_same_condition_keeps_its_time() -> None:
    async with led_node() as node:
        ref = await node.claim()
        device = AllocatedDevice(request="led", pool="node-1", device="led-0")
        await set_binding_conditions(node.client, DRIVER, ref, device, {"Attached": False})
        before = find_condition((await statuses(node))[0].conditions, "Attached")
        await set_binding_conditions(node.client, DRIVER, ref, device, {"Attached": False}, message="still not")
        after = find_condition((await statuses(node))[0].conditions, "Attached")
        assert before is not None
        assert after is not None
        assert (after.message, after.last_transition_time) == ("still not", before.last_transition_time)


class Attaching(Leds):
    def __init__(self) -> None:
        super().__init__()
        self.failure: BindingFailed | None = None

    async def bind(self, claim: AllocatedClaim, device: AllocatedDevice) -> None:
        self.log.append(f"bind {claim} {device.device}")
        if self.failure is not None:
            raise self.failure


def waiting(pool: str = "node-1") -> list[dict[str, object]]:
    return [
        {
            "request": "led", "driver": DRIVER, "pool": pool, "device": "led-0",
            "bindingConditions": ["Attached"], "bindingFailureConditions": ["AttachFailed"],
        }
    ]  # fmt: skip


@on_loop
async def test_a_device_that_a_pod_waits_for_is_bound_and_its_condition_set() -> None:
    async with led_node() as node, node.plugin(Attaching()).running(sockets=False) as plugin:
        await node.claim("blink", results=waiting())
        await node.until(lambda: statuses(node))
        (found,) = await statuses(node)
        assert [(each.type, each.status) for each in found.conditions] == [("Attached", "True")]
        assert plugin.driver.log == ["bind default/blink led-0"]  # type: ignore[attr-defined]


@on_loop
async def test_a_device_that_cannot_be_bound_sets_its_failure_condition() -> None:
    async with led_node() as node:
        driver = Attaching()
        driver.failure = BindingFailed("no free port", reason="NoPort")
        async with node.plugin(driver).running(sockets=False):
            await node.claim("blink", results=waiting())
            await node.until(lambda: statuses(node))
            (found,) = await statuses(node)
            told = [(each.type, each.status, each.reason, each.message) for each in found.conditions]
            assert told == [("AttachFailed", "True", "NoPort", "no free port")]


@on_loop
async def test_devices_of_other_nodes_are_left_to_their_drivers() -> None:
    async with led_node() as node, node.plugin(Attaching()).running(sockets=False) as plugin:
        await node.claim("elsewhere", results=waiting("node-2"))
        await node.claim("blink", results=waiting())
        await node.until(lambda: statuses(node))
        assert plugin.driver.log == ["bind default/blink led-0"]  # type: ignore[attr-defined]


async def so(value: object) -> object:
    return value


def reaching(*names: str) -> dict[str, object]:
    field = {"key": "metadata.name", "operator": "In", "values": list(names)}
    return {"nodeSelectorTerms": [{"matchFields": [field]}]}


@on_loop
async def test_of_a_pool_that_several_nodes_publish_the_chosen_node_binds() -> None:
    async with led_node() as node, node.plugin(Attaching()).running(sockets=False) as plugin:
        for name, place in (("elsewhere", "node-2"), ("blink", "node-1")):
            await node.claim(name, results=waiting(), node=place)
        await node.until(lambda: statuses(node))
        assert plugin.driver.log == ["bind default/blink led-0"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("how", ["deallocated", "deleted", "given to another node"])
def test_what_was_bound_and_never_prepared_is_given_back(how: str) -> None:
    @on_loop
    async def run() -> None:
        async with led_node() as node, node.plugin(Attaching()).running(sockets=False) as plugin:
            ref = await node.claim("blink", results=waiting())
            await node.until(lambda: statuses(node))
            found = await node.client.get(CLAIMS, "blink", namespace="default")
            if how == "deallocated":
                await node.client.patch_status(found, {"allocation": None, "devices": None, "reservedFor": None})
            elif how == "deleted":
                await node.client.patch(found, {"metadata": {"finalizers": None}})
                await node.client.delete(CLAIMS, "blink", namespace="default")
            else:
                await node.client.patch_status(found, {"allocation": None, "devices": None, "reservedFor": None})
                found = await node.client.get(CLAIMS, "blink", namespace="default")
                results = {"devices": {"results": waiting("node-2")}, "nodeSelector": reaching("node-2")}
                await node.client.patch_status(found, {"allocation": results})
            log = plugin.driver.log  # type: ignore[attr-defined]
            await node.until(lambda: so(len(log) > 1))
            assert log == ["bind default/blink led-0", "unprepare default/blink"]
            assert await plugin.calls.unprepare([ref]) == {ref.uid: ""}
            assert len(log) == 2

    run()


@on_loop
async def test_prepare_goes_on_from_what_was_bound_and_unprepare_ends_it() -> None:
    async with led_node() as node, node.plugin(Attaching()).running(sockets=False) as plugin:
        ref = await node.claim("blink", results=waiting())
        await node.until(lambda: statuses(node))
        assert (await plugin.prepare([ref]))[ref.uid].error == ""
        await plugin.calls.unprepare([ref])
        log = plugin.driver.log  # type: ignore[attr-defined]
        assert log == ["bind default/blink led-0", "prepare default/blink", "unprepare default/blink"]


@on_loop
async def test_what_an_earlier_life_bound_is_given_back_by_the_sweep() -> None:
    async with led_node() as node:
        async with node.plugin(Attaching()).running(sockets=False):
            await node.claim("blink", results=waiting())
            await node.until(lambda: statuses(node))
        found = await node.client.get(CLAIMS, "blink", namespace="default")
        await node.client.patch_status(found, {"allocation": None, "devices": None, "reservedFor": None})
        async with node.plugin(Attaching()).running(sockets=False) as plugin:
            log = plugin.driver.log  # type: ignore[attr-defined]
            await node.until(lambda: so(log))
            assert log == ["unprepare default/blink"]


@pytest.mark.parametrize("version", ["v1beta2", "v1beta1"])
def test_a_server_that_knows_only_older_versions_is_spoken_to_in_those(version: str) -> None:
    @on_loop
    async def run() -> None:
        off = ",".join(f"resource.k8s.io/{each}=false" for each in ("v1", "v1beta2") if each != version)
        settings = Settings(random=Random(7), runtime_config=off)
        async with led_node(settings=settings) as node, node.plugin(Told()).running(sockets=False) as plugin:
            ref = await node.claim()
            await node.until(node.slices)
            assert (await plugin.prepare([ref]))[ref.uid].error == ""
            await node.until(lambda: statuses(node))

    run()
