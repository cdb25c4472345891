"""The driver on its sockets, as a kubelet meets it; the client is built from field numbers alone."""

from __future__ import annotations

import asyncio
import shutil
import socket
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from drakit.base.errors import Unavailable, UsageError
from drakit.client import SLICES
from drakit.driverkit import ClaimRef, HealthReport, HealthState, KubeletPlugin
from drakit.driverkit.serving.paths import LIMIT, plugin_paths
from tests.driverkit.node import HastyClock, LedNode, Leds, led_node, on_loop, short_directory
from tests.driverkit.wire import Kubelet, plain

REGISTRATION = "leds.example.com-reg.sock"


def on_wire(ref: ClaimRef) -> dict[str, str]:
    return {"namespace": ref.namespace, "name": ref.name, "uid": ref.uid}


def registry(node: LedNode) -> Path:
    return node.root / "registry" / REGISTRATION


async def asked(node: LedNode) -> dict[str, Any]:
    async with Kubelet(registry(node)) as kubelet:
        return await kubelet.info()


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_plain_client_registers_prepares_and_unprepares(version: str) -> None:
    @on_loop
    async def run() -> None:
        async with led_node() as node, node.plugin(Leds()).running():
            info = await asked(node)
            assert info == {
                "type": "DRAPlugin",
                "name": "leds.example.com",
                "endpoint": f"{node.root}/plugins/leds.example.com/dra.sock",
                "supported_versions": ["v1.DRAPlugin", "v1beta1.DRAPlugin"],
            }
            share = "7e2a0c5b-0000-4000-8000-000000000001"
            result = {"request": "led", "driver": "leds.example.com", "pool": "node-1", "device": "led-0"}
            ref = await node.claim("blink", results=[{**result, "shareID": share}])
            missing = {"namespace": "default", "name": "missing", "uid": "u-1"}
            async with Kubelet(info["endpoint"]) as kubelet:
                answer = await kubelet.prepare([on_wire(ref), missing], version=version)
                device = {
                    "request_names": ["led"],
                    "pool_name": "node-1",
                    "device_name": "led-0",
                    "cdi_device_ids": [f"leds.example.com/claim={ref.uid}-0-led-0"],
                }
                assert answer == {
                    ref.uid: {"devices": [{**device, "share_id": share} if version == "v1" else device]},
                    "u-1": {"error": "claim default/missing: not found"},
                }
                assert await kubelet.prepare([], version=version) == {}
                assert await kubelet.unprepare([on_wire(ref), missing], version=version) == {ref.uid: {}, "u-1": {}}

    run()


@on_loop
async def test_sockets_go_with_the_driver_and_slices_stay() -> None:
    async with led_node() as node:
        async with node.plugin(Leds()).running() as plugin:
            await plugin.check()
            await node.until(node.slices)
            assert plugin.paths.service.is_socket()
        assert not registry(node).exists()
        assert not plugin.paths.service.exists()
        assert len(await node.slices()) == 1


@on_loop
async def test_registration_by_a_kubelet_publishes_at_once_what_it_wiped() -> None:
    async with led_node() as node, node.plugin(Leds()).running() as plugin:
        await node.until(node.slices)
        async with Kubelet(registry(node)) as kubelet:
            for found in await node.slices():
                await node.client.delete(SLICES, found.metadata.name)
            await kubelet.notify(registered=True)
            await node.until(node.slices)
            assert plugin.registration.registered
            await kubelet.notify(registered=False, error="no handler registered")
            assert (plugin.registration.registered, plugin.registration.error) == (False, "no handler registered")


@on_loop
async def test_a_socket_that_is_removed_comes_back() -> None:
    async with led_node() as node, node.plugin(Leds(), clock=HastyClock()).running() as plugin:
        registry(node).unlink()
        plugin.paths.service.unlink()
        with pytest.raises(Unavailable, match="does not answer"):
            await plugin.check()
        await node.until(lambda: _exists(registry(node), plugin.paths.service))
        await plugin.check()
        assert (await asked(node))["name"] == "leds.example.com"


@on_loop
async def test_a_directory_that_comes_later_or_comes_back_gets_its_socket() -> None:
    async with led_node() as node:
        (node.root / "registry").rmdir()
        async with node.plugin(Leds(), clock=HastyClock()).running():
            (node.root / "registry").mkdir()
            await node.until(lambda: _exists(registry(node)))
            shutil.rmtree(node.root / "registry")
            (node.root / "registry").mkdir()
            await node.until(lambda: _exists(registry(node)))
            assert (await asked(node))["name"] == "leds.example.com"


async def _exists(*paths: Path) -> bool:
    return all(path.exists() for path in paths)


@on_loop
async def test_stale_sockets_of_killed_instances_are_removed() -> None:
    async with led_node() as node:
        stale = node.root / "registry" / "leds.example.com-old-uid-reg.sock"
        other = node.root / "registry" / "fans.example.com-reg.sock"
        for path in (stale, other, registry(node)):
            with socket.socket(socket.AF_UNIX) as dead:
                dead.bind(str(path))
        async with node.plugin(Leds()).running():
            assert not stale.exists()
            assert other.exists()
            assert (await asked(node))["name"] == "leds.example.com"


@on_loop
async def test_of_two_instances_the_newer_takes_over_and_keeps_its_sockets() -> None:
    async with led_node() as node:
        async with node.plugin(Leds()).running():
            older = asyncio.Event()

            async def newer() -> None:
                async with node.plugin(Leds()).running() as plugin:
                    older.set()
                    await ended.wait()
                    await plugin.check()

            ended = asyncio.Event()
            task = asyncio.create_task(newer())
            await older.wait()
        ended.set()
        await task


@on_loop
async def test_instances_of_a_rolling_update_have_sockets_of_their_own() -> None:
    async with led_node() as node:
        driver = Leds()

        def instance(uid: str) -> KubeletPlugin:
            return KubeletPlugin(driver, node.client, node.settings(instance=uid), boot_id="b")

        async with instance("uid-a").running() as first, instance("uid-b").running() as second:
            assert first.paths.service.name == "dra-uid-a.sock"
            assert second.paths.registration.name == "leds.example.com-uid-b-reg.sock"
            ref = await node.claim()
            answers = await asyncio.gather(first.prepare([ref]), second.prepare([ref]))
            assert answers[0] == answers[1]
            assert driver.log == ["prepare default/blink"]
            assert await second.unprepare([ref]) == {ref.uid: ""}
        await node.until(node.slices)
        assert len(await node.slices()) == 1


# Names


def test_long_names_are_shortened_and_still_told_apart() -> None:
    root = Path("/var/lib/kubelet/plugins_registry/of/a/rather/deep/place")
    driver = f"{'x' * 50}.example.com"
    made = [
        plugin_paths(driver, plugin_dir=root, registry_dir=root, instance=uid)
        for uid in ("7e2a0c5b-0000-4000-8000-000000000001", "7e2a0c5b-0000-4000-8000-000000000002")
    ]
    paths = [path for each in made for path in (each.service, each.registration)]
    assert all(len(str(path)) <= LIMIT for path in paths)
    assert len(set(paths)) == 4
    assert all(path.name.endswith("-reg.sock") for path in paths[1::2])


def test_directories_that_leave_no_room_are_an_error() -> None:
    deep = Path("/" + "x" * 110)
    with pytest.raises(UsageError, match="longer than the 107 bytes"):
        plugin_paths("leds.example.com", plugin_dir=deep, registry_dir=deep)


@on_loop
async def test_a_driver_with_the_longest_names_can_be_reached() -> None:
    class Long(Leds):
        name = f"{'x' * 51}.example.com"

    with short_directory() as root:
        async with led_node() as node:
            deep = root / ("y" * 30)
            deep.mkdir()
            settings = node.settings(instance="7e2a0c5b-0000-4000-8000-000000000001")
            settings = type(settings)(
                node_name="node-1", plugin_dir=deep, registry_dir=deep, cdi_dir=root, instance=settings.instance
            )
            async with KubeletPlugin(Long(), node.client, settings, boot_id="b").running() as plugin:
                await plugin.check()


@pytest.mark.parametrize("name", ["", "No Name", "x" * 64, "-x.example.com"])
def test_a_name_that_is_none_is_an_error(name: str) -> None:
    @on_loop
    async def run() -> None:
        async with led_node() as node:
            driver = Leds()
            driver.name = name
            with pytest.raises(UsageError, match="the driver's name"):
                node.plugin(driver)

    run()


# Health


class Watched(Leds):
    def __init__(self) -> None:
        super().__init__()
        self.reports: asyncio.Queue[Sequence[HealthReport] | Exception] = asyncio.Queue()

    async def health(self) -> AsyncIterator[Sequence[HealthReport]]:
        while True:
            found = await self.reports.get()
            if isinstance(found, Exception):
                raise found
            yield found


def report(state: HealthState, **rest: Any) -> list[HealthReport]:
    return [HealthReport(pool="node-1", device="led-0", state=state, **rest)]


@on_loop
async def test_health_is_streamed_with_message_and_timeout() -> None:
    driver = Watched()
    async with led_node() as node, node.plugin(driver).running() as plugin:
        assert "v1alpha1.DRAResourceHealth" in (await asked(node))["supported_versions"]
        driver.reports.put_nowait(report(HealthState.UNHEALTHY, message="dim", timeout=12))
        async with Kubelet(plugin.paths.service) as kubelet:
            stream = kubelet.health()
            (first,) = plain(await stream.read())["devices"]
            assert int(first.pop("last_updated_time")) > 1_700_000_000
            assert first == {
                "device": {"pool_name": "node-1", "device_name": "led-0"},
                "health": 2,
                "health_check_timeout_seconds": "12",
                "message": "dim",
            }
            driver.reports.put_nowait(report(HealthState.HEALTHY))
            assert plain(await stream.read())["devices"][0]["health"] == 1
            late = kubelet.health()
            assert plain(await late.read())["devices"][0]["health"] == 1


@on_loop
async def test_a_health_stream_that_fails_says_unknown() -> None:
    driver = Watched()
    async with led_node() as node, node.plugin(driver).running() as plugin:
        driver.reports.put_nowait(report(HealthState.HEALTHY))
        async with Kubelet(plugin.paths.service) as kubelet:
            stream = kubelet.health()
            await stream.read()
            driver.reports.put_nowait(RuntimeError("no bus"))
            (after,) = plain(await stream.read())["devices"]
            assert (after.get("health", 0), after["message"]) == (0, "the driver cannot tell: no bus")


@on_loop
async def test_a_driver_without_health_says_that_it_has_none() -> None:
    async with led_node() as node, node.plugin(Leds()).running() as plugin, Kubelet(plugin.paths.service) as kubelet:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await kubelet.health().read()
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
