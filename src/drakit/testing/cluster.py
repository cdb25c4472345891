"""What a test does with a cluster, in a coroutine on the cluster's own loop.

In:  manifests, nodes, devices, faults; how much time goes by.
Out: a cluster that has settled after each call. What a test waits for in vain fails with the explanation.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import yaml

from drakit.api import Device, DeviceTaint, from_plain, results_of
from drakit.api.exchange import Handler, Request, Response
from drakit.api.objects.cluster import Event
from drakit.api.objects.pods import Pod
from drakit.apiserver.auth.identities import ADMIN
from drakit.apiserver.http.listener import Listener
from drakit.apiserver.serving.kubeconfig import ServerAccess, write_kubeconfig
from drakit.base.structs import Model
from drakit.client import (
    CLAIMS,
    CLASSES,
    EVENTS,
    NODES,
    POD_GROUPS,
    PODS,
    SLICES,
    TAINT_RULES,
    TEMPLATES,
    NotFound,
    Resource,
)
from drakit.driverkit import DevicePool, Driver
from drakit.explain import ClusterObjects, explain_pod
from drakit.explain.lines import explanation_lines
from drakit.simulate.cluster import SimulatedCluster
from drakit.simulate.hardware import Hardware
from drakit.simulate.loops import SteppedLoop

Applied = str | Path | Mapping[str, Any] | Model
Fault = Callable[["AsyncCluster"], Awaitable[None]]
PATIENCE = 300.0
"""Seconds of the cluster's time that `wait_for` waits."""
_GLANCE = 0.02
_EXPLAINED: tuple[Resource[Any], ...] = (NODES, CLASSES, SLICES, TAINT_RULES, POD_GROUPS, TEMPLATES, CLAIMS, PODS)


class DeviceUse(msgspec.Struct, frozen=True):
    """A device that a claim holds, and the pods that the claim is reserved for."""

    claim: str
    request: str
    device: str
    """`driver/pool/device`"""
    pods: tuple[str, ...] = ()


class AsyncCluster:
    """A running cluster. Names are those of namespace `default` unless they say `namespace/name`."""

    def __init__(self, simulated: SimulatedCluster, stack: AsyncExitStack, directory: Path) -> None:
        loop = asyncio.get_running_loop()
        if not isinstance(loop, SteppedLoop):
            raise TypeError("a cluster lives on a SteppedLoop")
        self.loop = loop
        self.simulated = simulated
        self.client = simulated.client
        """An administrator's, in process."""
        self._stack = stack
        self._directory = directory
        self._url = ""
        self.runner: asyncio.Runner | None = None
        """What runs the coroutines of the test."""

    # What happens to it

    async def apply(self, *what: Applied) -> list[Any]:
        """Apply YAML text, a file or directory, or objects; let happen what follows. Raise what the server refuses."""
        made = [
            await self.client.apply(each, manager="drakit-testing", force=True)
            for source in what
            for each in _objects(source)
        ]
        await self.settle()
        return made

    async def delete(self, kind: Resource[Any], name: str, *, grace: int | None = None) -> None:
        """Delete an object, and let happen what follows."""
        namespace, name = _split(name)
        await self.client.delete(kind, name, namespace=namespace if kind.kind.namespaced else "", grace=grace)
        await self.settle()

    async def add_node(
        self,
        name: str,
        *,
        devices: Mapping[str, Sequence[Device] | Sequence[DevicePool]] | None = None,
        drivers: Sequence[Driver] = (),
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Mapping[str, Any]] = (),
        capacity: Mapping[str, str | int] | None = None,
    ) -> None:
        """Add a node: with `devices` per driver, with `drivers` of your own; else with those of the profile."""
        await self.simulated.add_node(
            name, devices=devices, drivers=drivers, labels=labels, taints=taints, capacity=capacity
        )
        await self.settle()

    async def remove_node(self, name: str) -> None:
        """Switch a node off and delete it."""
        await self.simulated.remove_node(name)
        await self.settle()

    async def publish(
        self, node: str, devices: Sequence[Device] | Sequence[DevicePool] | str, *, driver: str = ""
    ) -> None:
        """A driver of a node publishes other devices from now on: objects, or YAML of a list of devices."""
        hardware = self._hardware(node, driver)
        given = [from_plain(Device, each) for each in yaml.safe_load(devices)] if isinstance(devices, str) else devices
        self.simulated.nodes[node].machine.install(hardware.driver, given)
        await self.settle()

    async def taint(self, node: str, device: str, *taints: DeviceTaint | str, driver: str = "") -> None:
        """The driver taints a device: `key=value:Effect` or objects; without any, its taints go."""
        self._hardware(node, driver).taint(device, *(_taint(each) for each in taints))
        await self.settle()

    async def break_device(self, node: str, device: str, reason: str = "broken", *, driver: str = "") -> None:
        """The device is unhealthy: its driver says so, and taints it with NoExecute. An empty reason mends it."""
        self._hardware(node, driver).break_device(device, reason)
        await self.settle()

    async def inject(self, fault: Fault) -> None:
        """Let something go wrong: see `drakit.testing.faults`."""
        await fault(self)
        await self.settle()

    # Time

    async def advance(self, seconds: float) -> None:
        """Let that much time go by; what is due in it happens at its time."""
        await self.loop.advance(seconds)
        self._raise_failures()

    async def settle(self) -> None:
        """Let happen all that happens without time going on."""
        await self.loop.settle()
        self._raise_failures()

    async def wait_for(self, pod: str, phase: str = "Running", *, seconds: float = PATIENCE) -> Pod:
        """Let time go by until a pod is in that phase (`Deleted`: is gone). Fail with why it is not."""
        found: Pod | None = None

        async def arrived() -> bool:
            nonlocal found
            found = await self.find_pod(pod)
            return phase == "Deleted" if found is None else found.status.phase == phase

        if not await self._until(arrived, seconds):
            state = "does not exist" if found is None else f"is {found.status.phase}"
            raise AssertionError(f"pod {pod} {state} after {seconds:g} s, not {phase}\n{await self.explain(pod)}")
        return found or Pod()

    async def wait_until(self, holds: Callable[[], Awaitable[bool]], what: str, *, seconds: float = PATIENCE) -> None:
        """Let time go by until something holds."""
        if not await self._until(holds, seconds):
            raise AssertionError(f"not so after {seconds:g} s: {what}\n{await self._all_events()}")

    async def _until(self, holds: Callable[[], Awaitable[bool]], seconds: float) -> bool:
        end = self.loop.time() + seconds
        await self.settle()
        while not await holds():
            if self.loop.time() >= end:
                return False
            await self._pass_time(end)
        return True

    async def _pass_time(self, end: float) -> None:
        """To the next timer; where time goes by itself, a moment of it."""
        if self.loop.flows:
            await asyncio.sleep(_GLANCE)
            return
        due = self.loop.next_timer()
        await self.advance(max(min(end, due if due is not None else end) - self.loop.time(), 0.0))

    # What a test looks at

    async def pod(self, name: str) -> Pod:
        """Raise AssertionError when there is no such pod."""
        found = await self.find_pod(name)
        assert found is not None, f"there is no pod {name}"
        return found

    async def find_pod(self, name: str) -> Pod | None:
        namespace, name = _split(name)
        found = await self.client.find(PODS, name, namespace=namespace)
        return found.view if found is not None else None

    async def events(self, about: str = "") -> list[Event]:
        """Events in the order in which they came; about the object of that name, or all."""
        found = [each.view for each in await self.client.list(EVENTS)]
        return [each for each in found if not about or each.involved_object.name == _split(about)[1]]

    async def allocations(self) -> list[DeviceUse]:
        """Every device that a claim holds, by claim."""
        return [
            DeviceUse(
                f"{claim.metadata.namespace}/{claim.metadata.name}",
                each.request,
                f"{each.driver}/{each.pool}/{each.device}",
                tuple(user.name for user in claim.status.reserved_for if user.resource == "pods"),
            )
            for claim in await self.client.list(CLAIMS)
            for each in results_of(claim)
        ]

    async def explain(self, pod: str) -> str:
        """What `drakit explain pod` says, and the pod's events."""
        namespace, name = _split(pod)
        objects = [each for kind in _EXPLAINED for each in await self.client.list(kind)]
        try:
            found = explain_pod(ClusterObjects(objects, gates=self.simulated.plan.gates), name, namespace)
        except NotFound:
            return f"there is no pod {pod}"
        except Exception as error:
            return str(error)
        return "\n".join([*explanation_lines(found), *(_line(each) for each in await self.events(name))])

    async def assert_pending(self, pod: str, because: str = "") -> None:
        """The pod waits; what `explain` says of it has that text."""
        found, why = await self.pod(pod), await self.explain(pod)
        assert found.status.phase == "Pending", f"pod {pod} is {found.status.phase}, not Pending\n{why}"
        assert because in why, f"{because!r} is not why pod {pod} waits:\n{why}"

    async def _all_events(self) -> str:
        return "\n".join(_line(each) for each in await self.events())

    # For others

    async def serve(self) -> str:
        """The address of the server for clients of any language; from now on time also goes by itself.

        Whoever brings no credentials is an administrator: the address is one of this machine only.
        """
        if not self._url:
            bound = socket.create_server(("127.0.0.1", 0))
            bound.setblocking(False)
            self.loop.flow()
            await self._stack.enter_async_context(Listener(Trusting(self.simulated.server), bound).running())
            self._url = f"http://127.0.0.1:{bound.getsockname()[1]}"
        return self._url

    async def kubeconfig(self) -> Path:
        """A file for `KUBECONFIG`, which goes with the cluster."""
        path = self._directory / "kubeconfig"
        write_kubeconfig(path, ServerAccess(url=await self.serve()))
        return path

    def _hardware(self, node: str, driver: str) -> Hardware:
        assert node in self.simulated.nodes, f"there is no node {node}: {', '.join(self.simulated.nodes)}"
        hardware = self.simulated.nodes[node].machine.hardware
        assert hardware, f"node {node} has no simulated devices"
        return hardware[driver] if driver else next(iter(hardware.values()))

    def _raise_failures(self) -> None:
        for error in self.simulated.failures():
            raise AssertionError(f"a component of the cluster has ended: {error}") from error


class Trusting:
    """Takes whoever brings no credentials for an administrator."""

    def __init__(self, server: Handler) -> None:
        self._server = server

    async def handle(self, request: Request) -> Response:
        if "authorization" not in request.headers:
            request = msgspec.structs.replace(request, user=ADMIN)
        return await self._server.handle(request)


def _objects(source: Applied) -> Iterable[Model | Mapping[str, Any]]:
    """Text with a line break or a colon is YAML; other text is a path."""
    if isinstance(source, Path) or (isinstance(source, str) and "\n" not in source and ":" not in source):
        path = Path(source)
        paths = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
        return [each for found in paths for each in _documents(found.read_text(encoding="utf-8"))]
    return _documents(source) if isinstance(source, str) else [source]


def _documents(text: str) -> list[Mapping[str, Any]]:
    return [each for each in yaml.safe_load_all(text) if each]


def _split(name: str) -> tuple[str, str]:
    namespace, _, rest = name.rpartition("/")
    return namespace or "default", rest


def _taint(given: DeviceTaint | str) -> DeviceTaint:
    if isinstance(given, DeviceTaint):
        return given
    pair, _, effect = given.rpartition(":")
    key, _, value = pair.partition("=")
    return DeviceTaint(key=key, value=value, effect=effect)


def _line(event: Event) -> str:
    return f"{event.type} {event.reason} {event.involved_object.name}: {event.message}"
