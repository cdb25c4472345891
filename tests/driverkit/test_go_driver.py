"""What a driver made with the Go helper was seen to do, done by a driver of the kit.

A flow's actions are performed in order (time goes fast), and what was seen of slices and sockets is awaited and
compared. The two agree but for the rules below; each has its reason.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from drakit.api import Device, ObjectMeta, ResourceSlice, to_plain
from drakit.client import CLAIMS, NODES, SLICES
from drakit.driverkit import AllocatedClaim, Driver, KubeletPlugin, Prepared, PreparedClaim, each
from tests.driverkit.node import HastyClock, LedNode, led_node, on_loop
from tests.driverkit.wire import Kubelet

Plain = dict[str, Any]
FLOWS = Path(__file__).parents[1] / "conformance" / "data" / "node-flows.jsonl.gz"
NAME = "test-driver.cdi.k8s.io"

RULES: dict[tuple[str, str], str] = {
    ("d03", "slices (summary)"): "300 devices are cut into slices; the Go helper is refused and keeps the old ones",
    ("d05", "files of the driver"): "an older instance that stops leaves the newer one's sockets where they are",
    ("d06", "33 s after the last instance stopped"): "the kubelet removed these slices, not the driver",
    ("d07", "8 s after the kubelet start (the kubelet deletes the node's slices at start)"): "published again at once",
    ("d10", "owner"): "an owner reference that somebody removed comes back, so that slices go with their node",
    ("*", "cdi"): "one CDI file per claim, not per request; removed also by an instance that did not write it",
    ("*", "state"): "records of claims and the lock for publishing stand beside the sockets",
}


def flows() -> list[Plain]:
    with gzip.open(FLOWS, "rt") as file:
        return [flow for flow in map(json.loads, file) if flow["group"] == "go-driver"]


class TestDriver(Driver):
    """The same devices and edits as the Go test driver."""

    __test__ = False
    name = NAME

    def __init__(self, count: int) -> None:
        self._count = count

    def devices(self) -> list[Device]:
        return [Device(name=f"device-{number:02d}") for number in range(self._count)]

    async def prepare(self, claims: Sequence[AllocatedClaim]) -> Prepared:
        return await each(claims, lambda claim: [device.ready(env={"user_a": "b"}) for device in claim.devices])

    async def unprepare(self, _: Sequence[PreparedClaim]) -> None:
        return


class Stage:
    """The node of a flow, and the instances of the driver on it."""

    def __init__(self, node: LedNode, flow: Plain) -> None:
        self.node = node
        self.flow = flow
        self._instances: dict[str, tuple[KubeletPlugin, asyncio.Event, asyncio.Task[None]]] = {}
        self._uids: dict[str, str] = {}
        self.checked = 0

    # Actions

    async def start(self, instance: str, step: Plain) -> None:
        args = step.get("args", [])
        count = int(args[args.index("--num-devices") + 1]) if "--num-devices" in args else 4
        settings = self.node.settings(instance=step.get("env", {}).get("ROLLING_UID", ""))
        plugin = KubeletPlugin(TestDriver(count), self.node.client, settings, clock=HastyClock(), boot_id="b")
        ready, stop = asyncio.Event(), asyncio.Event()

        async def run() -> None:
            async with plugin.running():
                ready.set()
                await stop.wait()

        task = asyncio.create_task(run())
        await ready.wait()
        self._instances[instance] = plugin, stop, task
        await self.node.until(self.node.slices)

    async def stop(self, instance: str) -> KubeletPlugin:
        plugin, stop, task = self._instances.pop(instance)
        stop.set()
        await task
        return plugin

    async def stop_all(self) -> None:
        for instance in list(self._instances):
            await self.stop(instance)

    async def kill(self, instance: str) -> None:
        """What is left of a process that was killed is what it looks like; really killed they are in test_killed."""
        plugin = await self.stop(instance)
        for path in (plugin.paths.service, plugin.paths.registration):
            with socket.socket(socket.AF_UNIX) as dead:
                dead.bind(str(path))

    async def restart_kubelet(self) -> None:
        await self.delete_slices()
        plugin = next(reversed(self._instances.values()))[0]
        async with Kubelet(plugin.paths.registration) as kubelet:
            await kubelet.info()
            await kubelet.notify(registered=True)

    async def delete_slices(self) -> None:
        for found in await self.node.slices():
            await self.node.client.delete(SLICES, found.metadata.name)

    async def edit(self, change: Callable[[ResourceSlice], ResourceSlice]) -> None:
        await self.node.until(self._is_one)
        (found,) = await self.node.slices()
        await self.node.client.mutate(SLICES, found.metadata.name, change)

    async def _is_one(self) -> bool:
        return len(await self.node.slices()) == 1

    async def add_foreign(self, metadata: ObjectMeta, **pool: Any) -> None:
        await self.node.until(self._is_one)
        (found,) = await self.node.slices()
        spec = msgspec.structs.replace(found.spec, pool=msgspec.structs.replace(found.spec.pool, **pool))
        await self.node.client.create(ResourceSlice(metadata=metadata, spec=spec))

    async def call(self, method: str, pod: str) -> None:
        """As the kubelet: the instance that registered last is asked."""
        manifests = self.flow["setup"]["manifests"]
        spec = next(m["spec"] for m in manifests if m["kind"] == "Pod" and m["metadata"]["name"] == pod)
        name = spec["resourceClaims"][0]["resourceClaimName"]
        claim = next(m for m in manifests if m["kind"] == "ResourceClaim" and m["metadata"]["name"] == name)
        if name not in self._uids:
            made = await self.node.client.create({**claim, "metadata": {"name": name, "namespace": "default"}})
            found = await self.node.client.get(CLAIMS, name, namespace="default")
            await self.node.client.patch_status(found, {"allocation": claim["status"]["allocation"]})
            self._uids[name] = made.metadata.uid
        plugin = next(reversed(self._instances.values()))[0]
        asked = {"namespace": "default", "name": name, "uid": self._uids[name]}
        async with Kubelet(plugin.paths.service) as kubelet:
            answer = await (kubelet.prepare([asked]) if method == "prepare" else kubelet.unprepare([asked]))
        assert "error" not in answer[self._uids[name]]

    async def perform(self, step: Plain) -> None:
        text: str = step["do"]
        for start, act in self._actions(step).items():
            if text.startswith(start):
                await act()
                return
        raise AssertionError(f"nobody knows how to: {text}")

    def _actions(self, step: Plain) -> dict[str, Callable[[], Coroutine[Any, Any, Any]]]:
        """By the words that an action begins with."""
        last = step["do"].split()[-1]

        def spec(**changes: Any) -> Callable[[ResourceSlice], ResourceSlice]:
            return lambda found: msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, **changes))

        def raised(found: ResourceSlice) -> ResourceSlice:
            return spec(pool=msgspec.structs.replace(found.spec.pool, generation=9))(found)

        def relabelled(found: ResourceSlice) -> ResourceSlice:
            metadata = msgspec.structs.replace(found.metadata, labels={"a": "b"}, owner_references=())
            return msgspec.structs.replace(found, metadata=metadata)

        return {
            "start driver": lambda: self.start("driver", step),
            "start instance": lambda: self.start(step["do"].split()[2], step),
            "SIGTERM to": lambda: self.stop(last),
            "SIGKILL to": lambda: self.kill(last),
            "second instance with the same flags": _nothing,
            "instance exit codes": _nothing,
            "edit the slice by hand": lambda: self.edit(spec(devices=(Device(name="device-00"),))),
            "edit metadata by hand": lambda: self.edit(relabelled),
            "raise pool.generation by hand": lambda: self.edit(raised),
            "delete the slice by hand": self.delete_slices,
            "add a foreign slice of the same driver": lambda: self.add_foreign(ObjectMeta(name="foreign")),
            "add a foreign slice of another pool": lambda: self.add_foreign(
                ObjectMeta(name="foreign2"), name="other", generation=7
            ),
            "restart the kubelet": self.restart_kubelet,
            "bind pod": lambda: self.call("prepare", step["do"].split()[2]),
            "delete pod": lambda: self.call("unprepare", step["do"].split()[2]),
        }

    # Observations

    async def compare(self, step: Plain) -> None:
        if (self.flow["recording"], step["saw"]) == ("d03", "slices (summary)"):
            await self.node.until(self._has_three_slices)
        elif step["saw"] == "files of the driver":
            await self._compare_files(step["files"])
        elif "slices" in step and (self.flow["recording"], step["saw"]) not in RULES:
            await self._compare_slices(step["slices"])

    async def _has_three_slices(self) -> bool:
        slices = await self.node.slices()
        return [len(found.spec.devices) for found in slices] == [128, 128, 44]

    async def _compare_slices(self, recorded: Sequence[Plain]) -> None:
        node = await self.node.client.get(NODES, "node-1")
        wanted = [self._normalised(found, node.view.metadata.uid) for found in recorded]

        async def agree() -> bool:
            found = [self._normalised(to_plain(each), node.view.metadata.uid) for each in await self.node.slices()]
            return found == wanted

        await self.node.until(agree)
        self.checked += 1

    def _normalised(self, found: Plain, node: str) -> Plain:
        metadata = {key: found["metadata"].get(key) for key in ("generateName", "generation", "labels")}
        owners = json.dumps(found["metadata"].get("ownerReferences", [])).replace(node, "<uid:node/node-1>")
        if self.flow["recording"] == "d10":
            owners = ""  # RULES: the owner comes back
        return {"metadata": {**metadata, "owners": owners}, "spec": found["spec"]}

    async def _compare_files(self, recorded: Sequence[Sequence[str]]) -> None:
        sockets = {name.rpartition("/")[2] for name, kind, _ in recorded if kind == "socket"}
        if not sockets and self._instances:  # RULES: the older instance took the newer one's sockets with it
            sockets = {"dra.sock", f"{NAME}-reg.sock"}
        found = {path.name for path in self.node.root.rglob("*.sock") if not path.name.startswith(".")}
        assert found == sockets
        cdi = {name for name, _, _ in recorded if "/cdi/" in name}
        assert len(self.node.cdi_files) <= len(cdi)
        self.checked += 1


async def _nothing() -> None:
    return


@asynccontextmanager
async def stage_of(flow: Plain) -> AsyncIterator[Stage]:
    async with led_node() as node:
        stage = Stage(node, flow)
        try:
            yield stage
        finally:
            await stage.stop_all()


@pytest.mark.parametrize("flow", [pytest.param(flow, id=flow["recording"]) for flow in flows()])
def test_a_driver_of_the_kit_does_what_one_of_the_go_helper_does(flow: Plain) -> None:
    @on_loop
    async def run() -> None:
        async with stage_of(flow) as stage:
            for step in flow["steps"]:
                if "do" in step:
                    await stage.perform(step)
                else:
                    await stage.compare(step)
            assert stage.checked

    run()
