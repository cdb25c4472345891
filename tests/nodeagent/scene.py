"""A node with drivers that answer every claim, on a clock that stands still but where a test lets it go on."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from drakit.client import CLAIMS, PODS, bind, metadata_of
from drakit.nodeagent.claims.records import ClaimRecord
from drakit.nodeagent.plugins.contract import PluginCallFailed
from tests.builders.loop import on_loop as on_loop
from tests.conformance.nodeflows.scripted import ScriptedDriver
from tests.conformance.nodeflows.stage import NAMESPACE, NODE, Stage, stage

Plain = dict[str, Any]
GPU = "gpu.example.com"
FLOW: Plain = {"about": "", "steps": [], "setup": {"manifests": []}}


class WillingDriver(ScriptedDriver):
    """Prepares one device per claim. `failures` are the texts with which its next calls fail."""

    delay = 0.0
    last: Any = None

    def __init__(self, name: str, it: Stage, *, instance: str = "", health: bool = False, **more: Any) -> None:
        base = "/var/lib/kubelet"
        about = {
            "endpoint": f"{base}/plugins/{name}/dra{instance}.sock",
            "registration_socket": f"{base}/plugins_registry/{name}{instance}-reg.sock",
            "health_service": health,
            **more,
        }
        super().__init__(name, instance, about, [], it.drivers)
        self.failures: list[str] = []
        self._answered = it.answered
        self.revision = 0

    def log(self, method: str, **about: Any) -> None:
        self.last = about.get("request")
        super().log(method, **about)

    async def answer(self, row: Plain | None, limit: float, *, late: bool = False) -> Any:
        del row, late
        request = self.last
        await self._wait(self.delay, limit)
        await self._answered()
        if self.failures:
            raise PluginCallFailed("Unavailable", self.failures.pop(0))
        return {"claims": {claim["uid"]: self._one(claim) for claim in request["claims"]}}

    def _one(self, claim: Plain) -> Plain:
        cdi = f"{self.name}/dev={claim['name']}" + (f"-{self.revision}" if self.revision else "")
        device = {"request_names": ["gpu"], "pool_name": "pool", "device_name": "gpu-0", "cdi_device_ids": [cdi]}
        return {"devices": [device]}


class Scene:
    """The test's hands on a stage."""

    def __init__(self, it: Stage) -> None:
        self.it = it

    async def driver(self, name: str = GPU, *, instance: str = "", health: bool = False) -> WillingDriver:
        return await self._begin(WillingDriver(name, self.it, instance=instance, health=health))

    async def made(self, **about: Any) -> WillingDriver:
        """A driver that says this of itself when it registers: `type`, `versions`."""
        made = WillingDriver(GPU, self.it, **about)
        made.versions = about.get("versions", made.versions)
        return await self._begin(made)

    async def _begin(self, made: WillingDriver) -> WillingDriver:
        self.it.drivers.drivers.append(made)
        made.start_service()
        self.it.directory.put(made.registration, made)
        await self.it.settle()
        return made

    async def lose(self, driver: ScriptedDriver) -> None:
        self.it.directory.remove(driver.registration)
        await self.it.settle()
        driver.stop_service()
        await self.it.settle()

    async def claim(self, name: str = "claim", *, drivers: Sequence[str] = (GPU,), pod: str = "", **meta: Any) -> Any:
        requests = [{"name": "gpu", "exactly": {"deviceClassName": "any", "allocationMode": "ExactCount", "count": 1}}]
        await self.it.client.create(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": name, "namespace": NAMESPACE, **meta},
                "spec": {"devices": {"requests": requests}},
            }
        )
        found = await self.it.client.get(CLAIMS, name, namespace=NAMESPACE)
        results = [{"request": "gpu", "driver": each, "pool": "pool", "device": "gpu-0"} for each in drivers]
        await self.it.client.patch_status(found, {"allocation": {"devices": {"results": results}}})
        if pod:
            await self.reserve(name, pod)
        return found

    async def reserve(self, claim: str, *pods: str) -> None:
        found = await self.it.client.get(CLAIMS, claim, namespace=NAMESPACE)
        users = [{"resource": "pods", "name": pod, "uid": await self.uid(pod)} for pod in pods]
        await self.it.client.patch_status(found, {"reservedFor": users or None})
        await self.it.settle()

    async def uid(self, pod: str) -> str:
        return str((await self.it.client.get(PODS, pod, namespace=NAMESPACE)).view.metadata.uid)

    async def pod(self, name: str = "pod", *, claims: Sequence[str] = ("claim",), **spec: Any) -> None:
        """Made, not bound. Each claim is used by the one container, under the name `gpu-<n>`."""
        named = {f"gpu-{index}": claim for index, claim in enumerate(claims)}
        container = {
            "name": "main",
            "image": "busybox",
            "resources": {"claims": [{"name": each} for each in named]} if named else {},
            **spec.pop("container", {}),
        }
        body = {
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
            "resourceClaims": [{"name": each, "resourceClaimName": claim} for each, claim in named.items()],
            **spec,
        }
        document = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": NAMESPACE}, "spec": body}
        made = await self.it.client.create(document)
        self.it.uids.learn("pod", name, metadata_of(made).uid)

    async def extended(self, request: str = "gpu") -> None:
        """A pod whose extended resource a claim provides, by that request. Made, not bound."""
        await self.pod(claims=(), container={"resources": {"limits": {"example.com/gpu": "1"}}})
        await self.claim("extended", pod="pod")
        found = await self.it.client.get(PODS, "pod", namespace=NAMESPACE)
        mapping = {"containerName": "main", "resourceName": "example.com/gpu", "requestName": request}
        status = {"resourceClaimName": "extended", "requestMappings": [mapping]}
        await self.it.client.patch_status(found, {"extendedResourceClaimStatus": status})

    async def bind(self, *names: str) -> None:
        for name in names or ("pod",):
            await bind(self.it.client, await self.it.client.get(PODS, name, namespace=NAMESPACE), NODE)
        await self.it.settle()

    async def start(self, name: str = "pod", claim: str = "claim") -> None:
        """A pod with its claim, bound."""
        await self.pod(name, claims=(claim,))
        await self.claim(claim, pod=name)
        await self.bind(name)

    async def delete(self, name: str = "pod", *, grace: int | None = None) -> None:
        await self.it.client.delete(PODS, name, namespace=NAMESPACE, grace=grace)
        await self.it.settle()

    async def restart(self) -> None:
        await self.it.stop_agent()
        await self.it.start_agent()

    # What happened

    def calls(self, method: str = "") -> list[str]:
        short = {"NodePrepareResources": "prepare", "NodeUnprepareResources": "unprepare"}
        made = [short[each.method] for each in self.it.calls if each.method in short]
        return [each for each in made if method in ("", each)]

    def cri(self) -> list[str]:
        return [each.method for each in self.it.cri]

    def state(self, name: str = "pod") -> Plain:
        return self.it.states[name][-1]

    def container(self, name: str = "pod") -> Plain:
        found: Plain = self.state(name)["containerStatuses"][0]
        return found

    def records(self) -> list[ClaimRecord]:
        """What the agent remembers of claims."""
        assert self.it.agent is not None
        return self.it.agent.records.all()

    def counted(self, name: str) -> dict[tuple[str, ...], float]:
        """The samples of a metric by the values of their labels."""
        return {tuple(labels.values()): value for each, labels, value in self.it.metrics() if each == name}

    @property
    def drivers(self) -> list[ScriptedDriver]:
        return self.it.drivers.drivers

    def events(self, reason: str) -> list[str]:
        return [each[3] for each in self.it.events if each[2] == reason]


@asynccontextmanager
async def scene(*, gates_off: Sequence[str] = ()) -> AsyncIterator[Scene]:
    flow = {**FLOW, "about": " ".join(f"gate {name} off" for name in gates_off)}
    with tempfile.TemporaryDirectory() as root:
        async with stage(flow, Path(root)) as it:
            yield Scene(it)
