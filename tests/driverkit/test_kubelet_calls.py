"""The calls that a real kubelet v1.36.4 was seen to make, call by call, against drivers made with the kit.

Each flow of the recording has scripted drivers. Here each is a driver of the kit, over its sockets, whose code fails or
hangs where the scripted one did. The answers agree but for these rules:

- ids of CDI devices are the kit's own;
- where the scripted driver failed the whole call, the kit fails the claims of it;
- where it made up devices, left claims out or added some, the kit answers for what was asked and allocated;
- a claim that is prepared is answered from memory, whatever the driver's code would say now;
- a call that the kubelet gave up on is finished, and the next one finds it done;
- both versions of the protocol are always offered.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from drakit.api import Device, base_request_name
from drakit.client import CLAIMS, NAMESPACES
from drakit.driverkit import (
    AllocatedClaim,
    DevicePool,
    Driver,
    KubeletPlugin,
    Prepared,
    PreparedClaim,
    Unprepared,
)
from tests.driverkit.node import LedNode, led_node, on_loop
from tests.driverkit.wire import Kubelet

FLOWS = Path(__file__).parents[1] / "conformance" / "data" / "node-flows.jsonl.gz"
Plain = dict[str, Any]


def flows() -> list[Plain]:
    with gzip.open(FLOWS, "rt") as file:
        return [flow for flow in map(json.loads, file) if flow["group"] != "go-driver" and calls_of(flow)]


def calls_of(flow: Plain) -> list[Plain]:
    return [
        step for step in flow["steps"]
        if step.get("saw") == "driver call" and step["method"] in ("NodePrepareResources", "NodeUnprepareResources")
    ]  # fmt: skip


class Scripted(Driver):
    """Fails or hangs as it is told to for the next call."""

    def __init__(self, name: str, pools: Sequence[DevicePool]) -> None:
        self.name = name
        self._pools = pools
        self.errors: dict[str, str] = {}
        self.go_on = asyncio.Event()
        self.go_on.set()

    def devices(self) -> Sequence[DevicePool]:
        return self._pools

    async def prepare(self, claims: Sequence[AllocatedClaim]) -> Prepared:
        await self.go_on.wait()
        return {
            claim.uid: RuntimeError(self.errors[claim.uid])
            if claim.uid in self.errors
            else [device.ready(env={"DEVICE": device.device}) for device in claim.devices]
            for claim in claims
        }

    async def unprepare(self, claims: Sequence[PreparedClaim]) -> Unprepared:
        return {claim.uid: RuntimeError(self.errors[claim.uid]) for claim in claims if claim.uid in self.errors}


class Replay:
    """One flow: its claims on the server, its drivers on their sockets."""

    def __init__(self, node: LedNode, flow: Plain, stack: AsyncExitStack) -> None:
        self.node = node
        self.flow = flow
        self._stack = stack
        self._manifests = {each["metadata"]["name"]: each for each in flow["setup"]["manifests"] if _is_claim(each)}
        self._uids: dict[str, str] = {}
        self._drivers: dict[tuple[str, str], tuple[Scripted, KubeletPlugin]] = {}
        self.prepared: set[tuple[str, str]] = set()
        """Driver and uid of what is prepared."""

    async def uid(self, claim: Plain) -> str:
        """The uid of our claim in the place of the recorded one; `#2` is a claim that replaced another."""
        if claim["uid"] not in self._uids:
            name = claim["name"]
            if await self.node.client.find(CLAIMS, name, namespace="default") is not None:
                await self.node.client.delete(CLAIMS, name, namespace="default")
            self._uids[claim["uid"]] = await self._create(self._manifests[name])
        return self._uids[claim["uid"]]

    async def _create(self, manifest: Plain) -> str:
        metadata = {key: value for key, value in manifest["metadata"].items() if key in ("name", "namespace")}
        document = {**{key: manifest[key] for key in ("apiVersion", "kind", "spec")}, "metadata": metadata}
        made = await self.node.client.create(document)
        allocation = manifest.get("status", {}).get("allocation")
        if allocation:
            found = await self.node.client.get(CLAIMS, metadata["name"], namespace="default")
            await self.node.client.patch_status(found, {"allocation": allocation})
        return made.metadata.uid  # type: ignore[no-any-return]

    async def driver(self, name: str, instance: str) -> tuple[Scripted, KubeletPlugin]:
        if (name, instance) not in self._drivers:
            made = Scripted(name, self._pools(name))
            settings = self.node.settings(instance=instance)
            plugin = KubeletPlugin(made, self.node.client, settings, boot_id="b")
            await self._stack.enter_async_context(plugin.running())
            self._drivers[name, instance] = made, plugin
        return self._drivers[name, instance]

    def _pools(self, driver: str) -> list[DevicePool]:
        found: dict[str, dict[str, None]] = {}
        for claim in self._manifests.values():
            for result in self.results(claim["metadata"]["name"], driver):
                found.setdefault(result["pool"], {})[result["device"]] = None
        return [
            DevicePool(name=pool, devices=tuple(Device(name=device) for device in devices), all_nodes=pool != "node-1")
            for pool, devices in found.items()
        ]

    def results(self, claim: str, driver: str) -> list[Plain]:
        allocation = self._manifests[claim].get("status", {}).get("allocation") or {}
        return [each for each in allocation.get("devices", {}).get("results", []) if each["driver"] == driver]

    async def call(self, step: Plain) -> None:
        driver, plugin = await self.driver(step["driver"], step.get("instance", ""))
        asked = [
            {"namespace": each["namespace"], "name": each["name"], "uid": await self.uid(each)}
            for each in step["request"]["claims"]
        ]
        driver.errors = await self._errors(step)
        method = step["method"]
        async with Kubelet(plugin.paths.service) as kubelet:
            call = kubelet.prepare if method == "NodePrepareResources" else kubelet.unprepare
            if "client_cancelled_after_s" in step:
                await self._give_up(driver, kubelet, asked, step["service"])
                return
            answer = await call(asked, version=step["service"])
        assert set(answer) == {each["uid"] for each in asked}
        for claim in asked:
            self._check(method, step["driver"], claim, answer[claim["uid"]], driver.errors)

    async def _give_up(self, driver: Scripted, kubelet: Kubelet, asked: list[Plain], version: str) -> None:
        driver.go_on.clear()
        pending = asyncio.ensure_future(kubelet.prepare(asked, version=version))
        await asyncio.sleep(0.05)
        pending.cancel()
        await asyncio.gather(pending, return_exceptions=True)
        driver.go_on.set()

    async def _errors(self, step: Plain) -> dict[str, str]:
        answer = step["answer"]
        errors = {}
        for claim in step["request"]["claims"]:
            told = answer.get("message") or answer.get("claims", {}).get(claim["uid"], {}).get("error")
            if told:
                errors[await self.uid(claim)] = told
        return errors

    def _check(self, method: str, driver: str, claim: Plain, answer: Plain, errors: dict[str, str]) -> None:
        key = (driver, claim["uid"])
        results = self.results(claim["name"], driver)
        if method == "NodeUnprepareResources":
            assert answer == (
                {"error": errors[claim["uid"]]} if claim["uid"] in errors and key in self.prepared else {}
            )
            if not answer:
                self.prepared.discard(key)
        elif claim["uid"] in errors and key not in self.prepared and results:
            assert answer == {"error": errors[claim["uid"]]}
        else:
            self.prepared.add(key)
            assert [_told(each) for each in answer.get("devices", [])] == [
                ([base_request_name(each["request"])], each["pool"], each["device"], each.get("shareID"))
                for each in results
            ]


def _told(device: Plain) -> tuple[object, ...]:
    return device["request_names"], device["pool_name"], device["device_name"], device.get("share_id")


def _is_claim(manifest: Plain) -> bool:
    return bool(manifest["kind"] == "ResourceClaim")


@asynccontextmanager
async def replay_of(flow: Plain) -> AsyncIterator[Replay]:
    async with led_node() as node, AsyncExitStack() as stack:
        labels = {"resource.kubernetes.io/admin-access": "true"}
        await node.client.patch_named(NAMESPACES, "default", {"metadata": {"labels": labels}})
        yield Replay(node, flow, stack)


@pytest.mark.parametrize("flow", [pytest.param(flow, id=flow["recording"]) for flow in flows()])
def test_a_driver_of_the_kit_answers_every_call_of_the_kubelet(flow: Plain) -> None:
    @on_loop
    async def run() -> None:
        async with replay_of(flow) as replay:
            for step in calls_of(flow):
                await replay.call(step)

    run()


def test_the_kubelet_registers_the_driver_as_it_was_seen_to() -> None:
    """GetInfo, NotifyRegistrationStatus and the health stream, in either order."""

    @on_loop
    async def run() -> None:
        flow = next(each for each in flows() if each["recording"] == "l06")
        seen = [step for step in flow["steps"] if step.get("saw") == "driver call"]
        async with replay_of(flow) as replay:
            _, plugin = await replay.driver("gpu.example.com", "")
            async with Kubelet(plugin.paths.registration) as registry, Kubelet(plugin.paths.service) as service:
                info = await registry.info()
                recorded = next(step["answer"] for step in seen if step["method"] == "GetInfo")
                assert (info["type"], info["name"]) == (recorded["type"], recorded["name"])
                assert Path(info["endpoint"]).parts[-2:] == Path(recorded["endpoint"]).parts[-2:]
                assert info["supported_versions"][:1] == recorded["supported_versions"]
                notified = next(step["request"] for step in seen if step["method"] == "NotifyRegistrationStatus")
                await registry.notify(registered=notified["plugin_registered"])
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await service.health().read()
                watched = next(step["answer"] for step in seen if step["method"] == "NodeWatchResources")
                assert caught.value.code().name == watched["grpc"]

    run()
