"""A DRA driver on plain grpcio, written from the wire alone: it keeps every rule of the suite.

It has no use for `drakit.driverkit`. Its methods are small so that `flaws` can break them one at a time.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from grpc import aio

from drakit.client import NODES, SLICES, AlreadyExists, Client, Conflict, NotFound, load_kubeconfig
from drakit.client.transport.http import Http
from drakit.pluginapi import (
    dra_v1_pb2,
    dra_v1_pb2_grpc,
    dra_v1beta1_pb2,
    dra_v1beta1_pb2_grpc,
    health_v1alpha1_pb2,
    health_v1alpha1_pb2_grpc,
    registration_pb2,
    registration_pb2_grpc,
)

NAME = "plain.example.com"
SICK = "sick"
METADATA = "/var/run/kubernetes.io/dra-device-attributes"


class PlainDriver:
    type = "DRAPlugin"
    versions = ("v1.DRAPlugin", "v1beta1.DRAPlugin", "v1alpha1.DRAResourceHealth")

    def __init__(
        self, *, kubeconfig: Path, node: str, plugins: Path, registry: Path, cdi: Path, uid: str, remove: bool = False
    ) -> None:
        self.node = node
        self.home = plugins / NAME
        self.cdi = cdi
        self.remove = remove
        self.endpoint = self.home / f"dra-{uid}.sock"
        self.registration = registry / f"{NAME}-{uid}-reg.sock"
        self._kubeconfig = kubeconfig
        self._locks: dict[str, asyncio.Lock] = {}
        self._servers: list[aio.Server] = []
        self._publishing: asyncio.Task[None] | None = None
        self.refused = asyncio.Event()

    # Life

    async def start(self) -> None:
        (self.home / "state").mkdir(parents=True, exist_ok=True)
        self.client = Client(Http(load_kubeconfig([self._kubeconfig])))
        await self.serve()
        self._publishing = asyncio.create_task(self.publish())

    async def serve(self) -> None:
        services = aio.server()
        self.add_services(services)
        health_v1alpha1_pb2_grpc.add_DRAResourceHealthServicer_to_server(Health(self), services)
        registration = aio.server()
        registration_pb2_grpc.add_RegistrationServicer_to_server(Registrar(self), registration)
        # The service comes first: who finds the registration may call at once.
        for server, path in ((services, self.endpoint), (registration, self.registration)):
            path.unlink(missing_ok=True)
            server.add_insecure_port(f"unix:{path}")
            await server.start()
            self._servers.append(server)

    def add_services(self, server: aio.Server) -> None:
        add_v1: Any = dra_v1_pb2_grpc.add_DRAPluginServicer_to_server
        add_v1beta1: Any = dra_v1beta1_pb2_grpc.add_DRAPluginServicer_to_server
        add_v1(Plugin(self, dra_v1_pb2), server)
        add_v1beta1(Plugin(self, dra_v1beta1_pb2), server)

    async def stop(self) -> int:
        """In good order: sockets go, slices and prepared claims stay."""
        await self.abort()
        if self.remove:
            for each in await self.own_slices():
                await self.client.delete(SLICES, each["metadata"]["name"])
        await self.client.close()
        self.registration.unlink(missing_ok=True)
        self.endpoint.unlink(missing_ok=True)
        return 0

    async def abort(self) -> None:
        if self._publishing is not None:
            self._publishing.cancel()
            await asyncio.gather(self._publishing, return_exceptions=True)
        for server in reversed(self._servers):
            await server.stop(None)

    # Registration

    async def info(self) -> registration_pb2.PluginInfo:
        return registration_pb2.PluginInfo(
            type=self.type, name=NAME, endpoint=str(self.endpoint), supported_versions=self.versions
        )

    def notified(self, error: str) -> None:
        if error:
            self.refused.set()

    # Slices

    def pools(self) -> list[dict[str, Any]]:
        """Two slices of one pool; their names keep the order of the devices."""
        devices = [{"name": f"device-{index}", "attributes": {"index": {"int": index}}} for index in (2, 0, 1)]
        return [self.slice("a", devices[:2], 2), self.slice("b", devices[2:], 2)]

    def slice(self, suffix: str, devices: Sequence[dict[str, Any]], count: int) -> dict[str, Any]:
        pool = {"name": self.node, "generation": 1, "resourceSliceCount": count}
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"{suffix}-{self.node}-{NAME}"},
            "spec": {"driver": NAME, "nodeName": self.node, "pool": pool, "devices": list(devices)},
        }

    async def publish(self) -> None:
        """Put things right, and again whenever somebody changes a slice."""
        owner = await self.owner()
        while True:
            with contextlib.suppress(AlreadyExists, Conflict, NotFound):
                since = await self.put_right(owner)
                await self.change(since)

    async def change(self, since: str) -> None:
        """Return when somebody writes a slice of this driver."""
        async with self.client.watch(SLICES, fields=f"spec.driver={NAME}", since=since, bookmarks=False) as changes:
            async for _ in changes:
                return

    async def owner(self) -> list[dict[str, Any]]:
        node = (await self.client.get(NODES, self.node)).document
        return [{"apiVersion": "v1", "kind": "Node", "name": self.node, "uid": node["metadata"]["uid"]}]

    async def put_right(self, owner: list[dict[str, Any]]) -> str:
        """The version from which on nothing has been looked at."""
        since = await self.client.current_version(SLICES)
        wanted = {each["metadata"]["name"]: each for each in self.pools()}
        found = {each["metadata"]["name"]: each for each in await self.own_slices()}
        for name in found.keys() - wanted.keys():
            await self.remove_stale(name)
        for name, each in wanted.items():
            if name not in found:
                each["metadata"]["ownerReferences"] = owner
                await self.create(each)
            elif found[name]["spec"] != each["spec"]:
                await self.repair(found[name], each)
        return since

    async def create(self, wanted: dict[str, Any]) -> None:
        await self.client.create(wanted)

    async def remove_stale(self, name: str) -> None:
        await self.client.delete(SLICES, name)

    async def repair(self, found: dict[str, Any], wanted: dict[str, Any]) -> None:
        await self.client.update({**wanted, "metadata": found["metadata"]})

    async def own_slices(self) -> list[dict[str, Any]]:
        path = "/apis/resource.k8s.io/v1/resourceslices"
        listed = await self.client.document(path)
        return [each for each in listed["items"] if each["spec"]["driver"] == NAME]

    # Prepare

    async def prepare(self, claims: Sequence[Any]) -> dict[str, Any]:
        """An answer per claim: devices, or an error."""
        return dict(zip([each.uid for each in claims], await asyncio.gather(*map(self.answer, claims)), strict=True))

    async def answer(self, claim: Any) -> dict[str, Any]:
        try:
            async with self._locks.setdefault(claim.uid, asyncio.Lock()):
                return {"devices": await self.prepare_one(claim)}
        except (NotFound, ValueError) as error:
            return {"error": str(error)}

    async def prepare_one(self, claim: Any) -> list[dict[str, Any]]:
        state = self.state(claim.uid)
        if not state.exists():
            devices = await self.devices_of(claim)
            self.write_files(claim.uid, devices)
            self.write(state, json.dumps(devices))
        devices = json.loads(state.read_text())
        self.restore(claim.uid, devices)
        return [self.answered(each) for each in devices]

    def restore(self, uid: str, devices: list[dict[str, Any]]) -> None:
        """After a reboot the state is there, and the files are not."""
        if not (self.cdi / f"{NAME}-{uid}.json").exists():
            self.write_files(uid, devices)

    async def devices_of(self, claim: Any) -> list[dict[str, Any]]:
        found = await self.fetch(claim)
        results = [each for each in found["status"]["allocation"]["devices"]["results"] if self.is_own(each)]
        return [
            {
                "request": each["request"],
                "pool": each["pool"],
                "device": each["device"],
                "share": each.get("shareID"),
                "cdi": f"{claim.uid}-{each['device']}",
                "claim": {key: found["metadata"][key] for key in ("name", "namespace", "uid")},
            }
            for each in results
        ]

    async def fetch(self, claim: Any) -> dict[str, Any]:
        path = f"/apis/resource.k8s.io/v1/namespaces/{claim.namespace}/resourceclaims/{claim.name}"
        found = await self.client.document(path)
        self.check(claim, found)
        return found

    def check(self, claim: Any, found: dict[str, Any]) -> None:
        if found["metadata"]["uid"] != claim.uid:
            raise ValueError(f"claim {claim.name} was replaced")
        if not found.get("status", {}).get("allocation"):
            raise ValueError(f"claim {claim.name} is not allocated")

    def is_own(self, result: dict[str, Any]) -> bool:
        return bool(result["driver"] == NAME)

    def answered(self, device: dict[str, Any]) -> dict[str, Any]:
        return {
            "request_names": [self.request_name(device["request"])],
            "pool_name": device["pool"],
            "device_name": device["device"],
            "cdi_device_ids": [f"{NAME}/device={device['cdi']}"],
        }

    def request_name(self, request: str) -> str:
        return request.partition("/")[0]

    # Files

    def state(self, uid: str) -> Path:
        return self.home / "state" / f"{uid}.json"

    def metadata_file(self, uid: str) -> Path:
        return self.home / f"metadata-{uid}.json"

    def write_files(self, uid: str, devices: list[dict[str, Any]]) -> None:
        self.write(self.metadata_file(uid), json.dumps(self.metadata(devices)))
        self.write(self.cdi / f"{NAME}-{uid}.json", json.dumps(self.spec(uid, devices)))

    def spec(self, uid: str, devices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "cdiVersion": "0.5.0",
            "kind": f"{NAME}/device",
            "devices": [{"name": each["cdi"], "containerEdits": self.edits(uid, each)} for each in devices],
        }

    def edits(self, uid: str, device: dict[str, Any]) -> dict[str, Any]:
        request = device["request"].partition("/")[0]
        inside = f"{METADATA}/resourceclaims/{device['claim']['name']}/{request}/{NAME}-metadata.json"
        mount = {"hostPath": str(self.metadata_file(uid)), "containerPath": inside, "options": ["ro", "bind"]}
        return {"env": [f"PLAIN_DEVICE={device['device']}"], "mounts": [mount]}

    def metadata(self, devices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "kind": "DeviceMetadata",
            "apiVersion": "metadata.resource.k8s.io/v1alpha1",
            "metadata": {**devices[0]["claim"], "generation": 1},
            "requests": [
                {
                    "name": each["request"],
                    "devices": [{"driver": NAME, "pool": each["pool"], "name": each["device"]}],
                }
                for each in devices
            ],
        }

    def write(self, path: Path, text: str) -> None:
        temporary = path.with_name(f".{path.name}.tmp")
        temporary.write_text(text)
        temporary.rename(path)

    # Unprepare

    async def unprepare(self, claims: Sequence[Any]) -> dict[str, str]:
        return {each.uid: await self.unprepare_one(each) for each in claims}

    async def unprepare_one(self, claim: Any) -> str:
        """The state goes last: what is interrupted is done again."""
        self.remove_files(claim.uid)
        self.state(claim.uid).unlink(missing_ok=True)
        return ""

    def remove_files(self, uid: str) -> None:
        (self.cdi / f"{NAME}-{uid}.json").unlink(missing_ok=True)
        self.metadata_file(uid).unlink(missing_ok=True)

    # Health

    async def health(self) -> AsyncIterator[health_v1alpha1_pb2.NodeWatchResourcesResponse]:
        told = None
        while True:
            sick = (self.home / SICK).exists()
            if sick != told:
                told = sick
                yield self.health_message(sick)
            await asyncio.sleep(0.05)

    def health_message(self, sick: bool) -> health_v1alpha1_pb2.NodeWatchResourcesResponse:
        value = health_v1alpha1_pb2.UNHEALTHY if sick else health_v1alpha1_pb2.HEALTHY
        device = health_v1alpha1_pb2.DeviceIdentifier(pool_name=self.node, device_name="device-0")
        entry = health_v1alpha1_pb2.DeviceHealth(device=device, health=value, last_updated_time=int(time.time()))
        return health_v1alpha1_pb2.NodeWatchResourcesResponse(devices=[entry])


class Registrar(registration_pb2_grpc.RegistrationServicer):
    def __init__(self, driver: PlainDriver) -> None:
        self._driver = driver

    async def GetInfo(self, request: Any, context: Any) -> registration_pb2.PluginInfo:
        return await self._driver.info()

    async def NotifyRegistrationStatus(self, request: Any, context: Any) -> registration_pb2.RegistrationStatusResponse:
        self._driver.notified(request.error)
        return registration_pb2.RegistrationStatusResponse()


class Plugin:
    """Both versions of the service, which differ in the share id alone."""

    def __init__(self, driver: PlainDriver, messages: Any) -> None:
        self._driver = driver
        self._messages = messages

    async def NodePrepareResources(self, request: Any, context: Any) -> Any:
        answers = await self._driver.prepare(request.claims)
        return self._messages.NodePrepareResourcesResponse(claims=answers)

    async def NodeUnprepareResources(self, request: Any, context: Any) -> Any:
        answers = await self._driver.unprepare(request.claims)
        return self._messages.NodeUnprepareResourcesResponse(
            claims={uid: self._messages.NodeUnprepareResourceResponse(error=error) for uid, error in answers.items()}
        )


class Health(health_v1alpha1_pb2_grpc.DRAResourceHealthServicer):
    def __init__(self, driver: PlainDriver) -> None:
        self._driver = driver

    async def NodeWatchResources(self, request: Any, context: Any) -> AsyncIterator[Any]:
        async for message in self._driver.health():
            yield message


def from_environment(kind: type[PlainDriver], *, remove: bool = False) -> PlainDriver:
    """With the variables that the suite sets, as drivers in Go read them."""
    return kind(
        kubeconfig=Path(os.environ["KUBECONFIG"]),
        node=os.environ["NODE_NAME"],
        plugins=Path(os.environ["KUBELET_PLUGINS_DIRECTORY_PATH"]),
        registry=Path(os.environ["KUBELET_REGISTRAR_DIRECTORY_PATH"]),
        cdi=Path(os.environ["CDI_ROOT"]),
        uid=os.environ["POD_UID"],
        remove=remove,
    )


async def main(kind: type[PlainDriver], *, remove: bool) -> None:
    driver = from_environment(kind, remove=remove)
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    await driver.start()
    await stopped.wait()
    await driver.stop()


if __name__ == "__main__":
    from tests.conformance.driver.flaws import FLAWS

    parser = argparse.ArgumentParser()
    parser.add_argument("--flaw", default="")
    parser.add_argument("--remove", action="store_true")
    given = parser.parse_args()
    chosen = FLAWS[given.flaw] if given.flaw else PlainDriver
    asyncio.run(main(chosen, remove=given.remove))
