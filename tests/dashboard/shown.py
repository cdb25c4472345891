"""A cluster with its dashboard in front: a real server on a real socket, with the real scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from drakit import start_server
from drakit.apiserver import Server
from drakit.apiserver.http.listener import Listener, bind
from drakit.cli.processes.dashboards import with_dashboard
from drakit.client import CLAIMS, PODS, SLICES, Client
from drakit.client.subresources import request_token
from tests.builders.documents import Plain
from tests.builders.podmanifests import by_name, claim, device_class, node, pod

DRIVER = "gpu.example.com"


class ShownCluster:
    def __init__(self, server: Server, client: Client, directory: Path, *, allow_changes: bool) -> None:
        self.client = client
        self._server = server
        self._login = directory / "dashboard.token"
        self._allow_changes = allow_changes
        self._port = 0

    @property
    def token(self) -> str:
        return self._login.read_text().strip()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/dashboard"

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """The dashboard, on the same port each time."""
        bound = bind("127.0.0.1", self._port)
        self._port = bound.getsockname()[1]
        async with (
            with_dashboard(self._server, self._login, allow_changes=self._allow_changes) as front,
            Listener(front, bound).running(),
        ):
            yield

    async def add_node(self, name: str, *devices: str | Plain, zone: str = "a") -> None:
        labels = {"topology.kubernetes.io/zone": zone}
        await self.client.create(node(name) | {"metadata": {"name": name, "labels": labels}})
        await self.client.create(gpu_slice(name, *devices))

    async def ask_for(self, name: str, count: int = 1, *, namespace: str = "default", **request: Any) -> None:
        """A pod with a claim for so many devices."""
        asked = {"name": "r", "exactly": {"deviceClassName": DRIVER, "count": count, **request}}
        await self.client.create(claim(name, asked, namespace=namespace))
        made = pod(name, claims=[by_name(name)], namespace=namespace)
        made["spec"]["containers"][0]["resources"] = {"claims": [{"name": "g"}]}
        await self.client.create(made)

    async def scheduled(self, name: str) -> str:
        async def there() -> str:
            return (await self.client.get(PODS, name, namespace="default")).view.spec.node_name

        return str(await until(there))

    async def run_pod(self, name: str) -> None:
        """What a node would report."""
        found = await self.client.get(PODS, name, namespace="default")
        now = self.client.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        ready = {"type": "PodReadyToStartContainers", "status": "True", "lastTransitionTime": now}
        states = [{"name": "ctr", "state": {"running": {"startedAt": now}}, "ready": True, "image": "img"}]
        conditions = [*found.document.get("status", {}).get("conditions", []), ready]
        status = {"phase": "Running", "conditions": conditions, "containerStatuses": states}
        await self.client.patch_status(found, status)

    async def stranger(self, name: str = "stranger") -> str:
        """The token of an account without any rights."""
        about = {"name": name, "namespace": "default"}
        await self.client.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": about})
        return (await request_token(self.client, name, namespace="default", seconds=3600)).token

    async def allow_group(self, name: str) -> None:
        """Members of the group may list and watch everything."""
        api = "rbac.authorization.k8s.io"
        rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["list", "watch"]}]
        about = {"apiVersion": f"{api}/v1", "metadata": {"name": "watchers"}}
        await self.client.create({**about, "kind": "ClusterRole", "rules": rules})
        role = {"apiGroup": api, "kind": "ClusterRole", "name": "watchers"}
        subjects = [{"apiGroup": api, "kind": "Group", "name": name}]
        await self.client.create({**about, "kind": "ClusterRoleBinding", "roleRef": role, "subjects": subjects})

    async def report_health(self, name: str, health: str) -> None:
        """What a node would report of the devices of a pod with one claim."""
        found = await self.client.get(PODS, name, namespace="default")
        status = dict(found.document["status"])
        told = [{"name": "claim:g", "resources": [{"resourceID": f"{DRIVER}/any=x", "health": health}]}]
        status["containerStatuses"] = [
            {**each, "allocatedResourcesStatus": told} for each in status["containerStatuses"]
        ]
        await self.client.patch_status(found, status)

    async def taint(self, name: str, *keys: str) -> None:
        """The driver's way to say that the first device of a node is broken, or repaired."""
        found = await self.client.get(SLICES, name)
        document = gpu_slice(name, *(each.name for each in found.spec.devices))
        taints = [{"key": key, "effect": "NoSchedule"} for key in keys]
        document["spec"]["devices"][0]["taints"] = taints
        document["metadata"]["resourceVersion"] = found.metadata.resource_version
        await self.client.update(document)

    async def release(self, name: str) -> None:
        await self.client.delete(PODS, name, namespace="default")
        found = await self.client.get(CLAIMS, name, namespace="default")
        await self.client.patch(found, {"metadata": {"finalizers": None}})
        found = await self.client.get(CLAIMS, name, namespace="default")
        await self.client.patch(found, {"status": {"reservedFor": None}}, subresource="status")
        found = await self.client.get(CLAIMS, name, namespace="default")
        await self.client.patch(found, {"status": {"allocation": None}}, subresource="status")


def gpu_slice(name: str, *devices: str | Plain) -> Plain:
    listed = [
        {"name": each, "attributes": {"model": {"string": "a100"}, "index": {"int": at}}}
        if isinstance(each, str)
        else each
        for at, each in enumerate(devices)
    ]
    place = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": name, "pool": place, "devices": listed}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}


async def until(found: Callable[[], Any], seconds: float = 90.0) -> Any:
    """The first answer that is not empty."""
    async with asyncio.timeout(seconds):
        while not (answer := await found()):
            await asyncio.sleep(0.05)
        return answer


@asynccontextmanager
async def shown_cluster(directory: Path, *, allow_changes: bool = False) -> AsyncIterator[ShownCluster]:
    """Two nodes of four devices each."""
    async with start_server(scheduler=True) as plane:
        shown = ShownCluster(plane.server, plane.client, directory, allow_changes=allow_changes)
        await plane.client.create(device_class(DRIVER, DRIVER))
        for name, zone in (("node-1", "a"), ("node-2", "b")):
            await shown.add_node(name, *(f"gpu-{number}" for number in range(4)), zone=zone)
        yield shown
