"""Prepare and unprepare, in process: an answer per claim, each claim once."""

from __future__ import annotations

from tests.driverkit.node import Leds, led_node, on_loop


@on_loop
async def test_a_claim_is_prepared_and_given_back() -> None:
    async with led_node() as node:
        driver = Leds()
        plugin = node.plugin(driver)
        await plugin.start()
        ref = await node.claim("blink", "led-1")
        answer = (await plugin.prepare([ref]))[ref.uid]
        assert answer.error == ""
        assert [(device.device, ids) for device, ids in answer.devices] == [
            ("led-1", (f"leds.example.com/claim={ref.uid}-0-led-1",))
        ]
        assert node.cdi_files == [f"leds.example.com-{ref.uid}.json"]
        assert await plugin.unprepare([ref]) == {ref.uid: ""}
        assert node.cdi_files == []
        assert driver.log == ["prepare default/blink", "unprepare default/blink"]


@on_loop
async def test_a_repeated_call_never_gets_to_the_driver() -> None:
    async with led_node() as node:
        driver = Leds()
        plugin = node.plugin(driver)
        await plugin.start()
        ref = await node.claim()
        first = await plugin.prepare([ref])
        assert await plugin.prepare([ref]) == first
        await plugin.unprepare([ref])
        assert await plugin.unprepare([ref]) == {ref.uid: ""}
        assert driver.log == ["prepare default/blink", "unprepare default/blink"]
