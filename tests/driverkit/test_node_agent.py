"""A driver of the kit and drakit's own node agent, over their sockets: neither knows the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from drakit.driverkit import ClaimRef, KubeletPlugin
from drakit.nodeagent.plugins.channels import GrpcDialer
from drakit.nodeagent.plugins.contract import ClaimIdentity as AskedClaim
from drakit.nodeagent.plugins.directory import RegistryDirectory
from drakit.nodeagent.plugins.drivers import Drivers
from drakit.nodeagent.plugins.registration import PluginRegistration
from tests.driverkit.node import HastyClock, LedNode, Leds, led_node, on_loop

NAME = "leds.example.com"


@asynccontextmanager
async def agent(node: LedNode) -> AsyncIterator[Drivers]:
    """What the node agent has for drivers: the registry directory watched, drivers registered and called."""
    clock, dialer = HastyClock(), GrpcDialer()
    drivers = Drivers(dialer, clock)
    async with RegistryDirectory(node.root / "registry", clock) as directory:
        registering = asyncio.create_task(PluginRegistration(directory, dialer, {"DRAPlugin": drivers}, clock).run())
        try:
            yield drivers
        finally:
            registering.cancel()
            await asyncio.gather(registering, return_exceptions=True)
            await drivers.stop()


def asked(ref: ClaimRef) -> AskedClaim:
    return AskedClaim(namespace=ref.namespace, name=ref.name, uid=ref.uid)


async def _usable(drivers: Drivers, *, wanted: bool = True) -> bool:
    return drivers.is_usable(NAME) is wanted


@on_loop
async def test_the_agent_registers_the_driver_and_has_claims_prepared() -> None:
    async with led_node() as node, agent(node) as drivers, node.plugin(Leds()).running() as plugin:
        await node.until(lambda: _usable(drivers))
        await node.until(lambda: _both(plugin))
        ref = await node.claim()
        answer = (await drivers.prepare(NAME, [asked(ref)]))[ref.uid]
        assert [device.device for device in answer.devices] == ["led-0"]
        assert await drivers.unprepare(NAME, [asked(ref)]) == {ref.uid: ""}


@on_loop
async def test_the_agent_finds_the_driver_again_after_either_was_away() -> None:
    async with led_node() as node:
        ref = await node.claim()
        async with node.plugin(Leds()).running():
            async with agent(node) as drivers:
                await node.until(lambda: _usable(drivers))
                await drivers.prepare(NAME, [asked(ref)])
            async with agent(node) as drivers:  # the agent was restarted
                await node.until(lambda: _usable(drivers))
        async with agent(node) as drivers:
            assert not drivers.is_usable(NAME)
            async with node.plugin(Leds()).running():  # the driver was
                await node.until(lambda: _usable(drivers))
                assert await drivers.unprepare(NAME, [asked(ref)]) == {ref.uid: ""}
            await node.until(lambda: _usable(drivers, wanted=False))


@on_loop
async def test_in_a_rolling_update_the_newer_instance_unprepares_what_the_older_prepared() -> None:
    async with led_node() as node, agent(node) as drivers:
        driver, ref = Leds(), await node.claim()

        def instance(uid: str) -> KubeletPlugin:
            return KubeletPlugin(driver, node.client, node.settings(instance=uid), boot_id="b")

        async with instance("b-2").running() as newer:
            async with instance("a-1").running() as older:
                await node.until(lambda: _both(older, newer))
                await drivers.prepare(NAME, [asked(ref)])
            await node.until(lambda: _usable(drivers))
            assert await drivers.unprepare(NAME, [asked(ref)]) == {ref.uid: ""}
        assert driver.log == ["prepare default/blink", "unprepare default/blink"]


async def _both(*plugins: KubeletPlugin) -> bool:
    return all(plugin.registration.registered for plugin in plugins)
