"""Prepare and unprepare, in process: an answer per claim, each claim once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from drakit.api import Device
from drakit.client import CLAIMS, NODES
from drakit.driverkit import AllocatedClaim, ClaimRef, Driver, Prepared, PreparedDevice, each
from tests.driverkit.node import Leds, led_node, led_plugin, node_allocation, on_loop

ON = "prepare default/blink"
OFF = "unprepare default/blink"


@on_loop
async def test_a_claim_is_prepared_and_given_back() -> None:
    async with led_plugin() as (node, plugin, driver):
        ref = await node.claim("blink", "led-1")
        answer = (await plugin.prepare([ref]))[ref.uid]
        assert answer.error == ""
        assert [(device.device, ids) for device, ids in answer.devices] == [
            ("led-1", (f"leds.example.com/claim={ref.uid}-0-led-1",))
        ]
        assert node.cdi_files == [f"leds.example.com-{ref.uid}.json"]
        assert await plugin.unprepare([ref]) == {ref.uid: ""}
        assert node.cdi_files == []
        assert driver.log == [ON, OFF]


@on_loop
async def test_a_repeated_call_never_gets_to_the_driver() -> None:
    async with led_plugin() as (node, plugin, driver):
        ref = await node.claim()
        first = await plugin.prepare([ref])
        assert await plugin.prepare([ref]) == first
        await plugin.unprepare([ref])
        assert await plugin.unprepare([ref]) == {ref.uid: ""}
        assert driver.log == [ON, OFF]


@on_loop
async def test_a_repeated_call_needs_no_server() -> None:
    async with led_plugin() as (node, plugin, _):
        ref = await node.claim()
        first = await plugin.prepare([ref])
        await node.client.delete(CLAIMS, "blink", namespace="default")
        assert await plugin.prepare([ref]) == first


@on_loop
async def test_a_bad_claim_fails_alone() -> None:
    async with led_plugin() as (node, plugin, driver):
        good = await node.claim("good")
        missing = ClaimRef(namespace="default", name="missing", uid="u-1")
        replaced = ClaimRef(namespace="default", name="good", uid="u-2")
        answers = await plugin.prepare([missing, good, replaced])
        assert answers["u-1"].error == "claim default/missing: not found"
        assert "it was replaced" in answers["u-2"].error
        assert answers[good.uid].error == ""
        assert driver.log == ["prepare default/good"]


@on_loop
async def test_a_claim_without_allocation_is_refused() -> None:
    async with led_plugin() as (node, plugin, _):
        ref = await node.claim()
        claim = await node.client.get(CLAIMS, "blink", namespace="default")
        await node.client.patch_status(claim, {"allocation": None})
        assert (await plugin.prepare([ref]))[ref.uid].error == "claim default/blink: not allocated"


@on_loop
async def test_a_claim_for_another_node_is_refused() -> None:
    async with led_plugin() as (node, plugin, driver):
        ref = await node.claim("blink", node="node-2")
        answer = (await plugin.prepare([ref]))[ref.uid]
        assert answer.error == "claim default/blink: allocated for other nodes than node-1"
        assert driver.log == []


@pytest.mark.parametrize(
    ("label", "error"), [("a", ""), ("b", "claim default/blink: allocated for other nodes than node-1")]
)
def test_a_claim_for_nodes_with_a_label_needs_that_label(label: str, error: str) -> None:
    @on_loop
    async def run() -> None:
        async with led_plugin() as (node, plugin, _):
            await node.client.patch_named(NODES, "node-1", {"metadata": {"labels": {"zone": "a"}}})
            ref = await node.claim()
            claim = await node.client.get(CLAIMS, "blink", namespace="default")
            given = node_allocation(("led-0",))
            term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": [label]}]}
            await node.client.patch_status(claim, {"allocation": None})
            claim = await node.client.get(CLAIMS, "blink", namespace="default")
            selector = {"nodeSelectorTerms": [term]}
            await node.client.patch_status(claim, {"allocation": {**given, "nodeSelector": selector}})
            assert (await plugin.prepare([ref]))[ref.uid].error == error

    run()


@on_loop
async def test_calls_and_claims_are_counted() -> None:
    async with led_plugin() as (node, plugin, _):
        ref = await node.claim()
        await plugin.prepare([ref])
        await plugin.prepare([ref])
        value = plugin.registry.get_sample_value
        driver = {"driver_name": "leds.example.com"}
        assert value("dra_resource_claims_in_use", driver) == 1
        for result in ("done", "remembered"):
            labels = {**driver, "method_name": "NodePrepareResources", "result": result}
            assert value("drakit_driver_claims_total", labels) == 1
        await plugin.unprepare([ref])
        assert value("dra_resource_claims_in_use", driver) == 0


@on_loop
async def test_a_device_that_is_gone_fails_its_claim_until_it_is_back() -> None:
    async with led_plugin() as (node, plugin, driver):
        ref = await node.claim("blink", "led-3")
        driver.published = [Device(name="led-0")]
        driver.changed()
        assert (await plugin.prepare([ref]))[ref.uid].error == "device node-1/led-3 is not there any more"
        driver.published = [Device(name="led-3")]
        driver.changed()
        assert (await plugin.prepare([ref]))[ref.uid].error == ""


@on_loop
async def test_a_claim_of_other_drivers_only_is_an_empty_answer() -> None:
    async with led_plugin() as (node, plugin, driver):
        ref = await node.claim("blink", driver="other.example.com")
        answer = (await plugin.prepare([ref]))[ref.uid]
        assert (answer.error, answer.devices, driver.log) == ("", (), [])


@pytest.mark.parametrize("uid", ["", "../../etc/passwd", ".hidden", "a/b", "x" * 200])
def test_a_uid_that_is_none_touches_no_file(uid: str) -> None:
    @on_loop
    async def run() -> None:
        async with led_plugin() as (_, plugin, driver):
            ref = ClaimRef(namespace="default", name="blink", uid=uid)
            assert "is none" in (await plugin.prepare([ref]))[uid].error
            assert "is none" in (await plugin.unprepare([ref]))[uid]
            assert driver.log == []

    run()


@on_loop
async def test_a_claim_that_comes_twice_in_a_call_is_prepared_once() -> None:
    async with led_plugin() as (node, plugin, driver):
        ref = await node.claim()
        assert list(await plugin.prepare([ref, ref])) == [ref.uid]
        assert driver.log == [ON]


@on_loop
async def test_a_driver_that_fails_for_one_claim_cleans_up_that_one() -> None:
    async with led_plugin() as (node, plugin, driver):
        bad, good = await node.claim("bad"), await node.claim("good", "led-1")
        driver.prepare_fails = lambda claim: RuntimeError("no power") if claim.ref.name == "bad" else None
        answers = await plugin.prepare([bad, good])
        assert (answers[bad.uid].error, answers[good.uid].error) == ("no power", "")
        assert driver.log == ["prepare default/bad", "prepare default/good", "unprepare default/bad"]
        assert driver.lit == {good.uid}
        assert await plugin.unprepare([bad]) == {bad.uid: ""}


@on_loop
async def test_what_could_not_be_cleaned_up_is_cleaned_up_before_the_next_prepare() -> None:
    async with led_plugin() as (node, plugin, driver):
        ref = await node.claim()
        driver.prepare_fails = lambda _: RuntimeError("no power")
        driver.unprepare_fails = lambda _: RuntimeError("still no power")
        await plugin.prepare([ref])
        driver.prepare_fails = lambda _: None
        driver.unprepare_fails = lambda _: None
        assert (await plugin.prepare([ref]))[ref.uid].error == ""
        assert driver.log == [ON, OFF, OFF, ON]


@on_loop
async def test_unprepare_that_fails_is_tried_again() -> None:
    async with led_plugin() as (node, plugin, driver):
        ref = await node.claim()
        await plugin.prepare([ref])
        driver.unprepare_fails = lambda _: RuntimeError("in use")
        assert await plugin.unprepare([ref]) == {ref.uid: "in use"}
        assert node.cdi_files != []
        driver.unprepare_fails = lambda _: None
        assert await plugin.unprepare([ref]) == {ref.uid: ""}
        assert node.cdi_files == []


class Odd(Leds):
    """Returns what it should not."""

    def __init__(self) -> None:
        super().__init__()
        self.answer: Prepared = {}

    async def prepare(self, claims: Sequence[AllocatedClaim]) -> Prepared:
        await super().prepare(claims)
        return self.answer


@pytest.mark.parametrize(
    ("device", "error"),
    [
        (None, "the driver gave no answer for this claim"),
        ((), "prepare returned nothing for device node-1/led-0"),
        (("led", "node-1", "led-9"), "prepare returned device node-1/led-9, which the claim does not have"),
    ],
)
def test_an_answer_that_does_not_fit_the_claim_is_an_error(device: tuple[str, ...] | None, error: str) -> None:
    @on_loop
    async def run() -> None:
        async with led_plugin(Odd()) as (node, plugin, driver):
            ref = await node.claim()
            made = [PreparedDevice(request=device[0], pool=device[1], device=device[2])] if device else []
            driver.answer = {} if device is None else {ref.uid: made}  # type: ignore[attr-defined]
            assert (await plugin.prepare([ref]))[ref.uid].error == error
            assert driver.lit == set()

    run()


@on_loop
async def test_edits_that_a_runtime_would_refuse_name_their_field() -> None:
    async with led_plugin() as (node, plugin, driver):
        driver.switch_on = lambda claim: [each.ready(device_nodes=["null"]) for each in claim.devices]  # type: ignore[method-assign]
        ref = await node.claim()
        error = (await plugin.prepare([ref]))[ref.uid].error
        assert 'devices[0].edits.deviceNodes[0].path: Invalid value: "null": must be an absolute path' in error
        assert node.cdi_files == []


class Slow(Leds):
    def __init__(self) -> None:
        super().__init__()
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()
        self.most = 0
        self._now = 0

    async def prepare(self, claims: Sequence[AllocatedClaim]) -> Prepared:
        self._now += 1
        self.most = max(self.most, self._now)
        self.begun.set()
        await self.go_on.wait()
        self._now -= 1
        return await super().prepare(claims)


@on_loop
async def test_a_call_that_its_caller_gives_up_on_goes_on_and_is_found_by_the_next() -> None:
    driver = Slow()
    async with led_plugin(driver) as (node, plugin, _):
        ref = await node.claim()
        first = asyncio.create_task(plugin.prepare([ref]))
        await driver.begun.wait()
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        second = asyncio.create_task(plugin.prepare([ref]))
        driver.go_on.set()
        assert (await second)[ref.uid].error == ""
        assert driver.log == [ON]


@pytest.mark.parametrize(("serialize", "most"), [(True, 1), (False, 2)])
def test_calls_come_one_at_a_time_unless_the_driver_wants_otherwise(serialize: bool, most: int) -> None:
    class Chosen(Slow):
        pass

    Chosen.serialize = serialize

    @on_loop
    async def run() -> None:
        driver = Chosen()
        async with led_plugin(driver) as (node, plugin, _):
            refs = [await node.claim("one"), await node.claim("two", "led-1")]
            calls = [asyncio.create_task(plugin.prepare([ref])) for ref in refs]
            await driver.begun.wait()
            if not serialize:
                await node.until(lambda: _true(driver.most == most))
            driver.go_on.set()
            await asyncio.gather(*calls)
            assert driver.most == most

    run()


async def _true(value: bool) -> bool:
    return value


@on_loop
async def test_stopping_waits_for_calls_that_are_under_way() -> None:
    driver = Slow()
    async with led_node() as node:
        async with node.plugin(driver).running(sockets=False) as plugin:
            ref = await node.claim()
            call = asyncio.create_task(plugin.prepare([ref]))
            await driver.begun.wait()
            asyncio.get_running_loop().call_later(0.05, driver.go_on.set)
        assert (await call)[ref.uid].error == ""


def test_each_turns_what_a_function_raises_into_the_claims_answer() -> None:
    def function(claim: AllocatedClaim) -> list[PreparedDevice]:
        raise KeyError(claim.ref.name)

    async def run() -> dict[str, object]:
        ref = ClaimRef(namespace="n", name="m", uid="u")
        claim = AllocatedClaim(ref=ref, devices=(), claim=None)  # type: ignore[arg-type]
        return dict(await each([claim], function))

    answers = asyncio.run(run())
    assert isinstance(answers["u"], KeyError)


def test_a_driver_must_say_what_it_has_and_does() -> None:
    assert sorted(Driver.__abstractmethods__) == ["devices", "prepare", "unprepare"]
