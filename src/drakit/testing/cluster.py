"""What a test does with a cluster, in a coroutine on the cluster's own loop.

In:  manifests, nodes, devices, faults; how much time goes by.
Out: a cluster that has settled after each call. What a test waits for in vain fails with the explanation.
"""

from __future__ import annotations

import asyncio
import math
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypedDict, TypeVar, Unpack

import msgspec
import yaml

from drakit.api import Device, DeviceTaint, from_plain, results_of
from drakit.api.exchange import Handler, Request, Response
from drakit.api.objects.cluster import Event
from drakit.api.objects.pods import Pod
from drakit.apiserver.auth.identities import ADMIN
from drakit.apiserver.http.listener import Listener
from drakit.apiserver.serving.kubeconfig import ServerAccess, write_kubeconfig
from drakit.base.errors import NotFound
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
    Client,
    Resource,
)
from drakit.driverkit import DevicePool, Driver
from drakit.explain import ClusterObjects, explain_pod
from drakit.explain.lines import explanation_lines
from drakit.simulate.cluster import ClusterPlan, Devices, MachinePlan, RunningNode, SimulatedCluster, running_cluster
from drakit.simulate.disks.scratch import scratch_directory
from drakit.simulate.hardware import Hardware
from drakit.simulate.loops import SteppedLoop
from drakit.testing.collector import rare_collections
from drakit.testing.drivers import DriverProcesses
from drakit.testing.manifests import Applied, objects_of, split_name, taint_of

T = TypeVar("T")

Fault = Callable[["AsyncCluster"], Awaitable[None]]
PATIENCE = 300.0
"""Seconds of the cluster's time that `wait_for` waits."""
REAL_PATIENCE = 30.0
"""The same once time goes by itself: then they are real ones."""
PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown", "Deleted")
_GLANCE = 0.02
_MOST_EXPLAINED = 3
_EXPLAINED: tuple[Resource[Any], ...] = (NODES, CLASSES, SLICES, TAINT_RULES, POD_GROUPS, TEMPLATES, CLAIMS, PODS)


class DeviceUse(msgspec.Struct, frozen=True):
    """A device that a claim holds, and the pods that the claim is reserved for."""

    claim: str
    request: str
    device: str
    """`driver/pool/device`"""
    pods: tuple[str, ...] = ()


class NodeOptions(TypedDict, total=False):
    """The fields of `MachinePlan`, as arguments."""

    devices: Devices | None
    drivers: Sequence[Driver | Callable[[], Driver]]
    labels: Mapping[str, str]
    taints: Sequence[Mapping[str, Any]]
    capacity: Mapping[str, str | int]


class AsyncCluster:
    """A running cluster. Names are those of namespace `default` unless they say `namespace/name`."""

    def __init__(self, simulated: SimulatedCluster, stack: AsyncExitStack, directory: Path) -> None:
        """`stack` ends the cluster; what is started later is added to it."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SteppedLoop)
        self.loop = loop
        self.is_closed = False
        self.runner: asyncio.Runner | None = None
        """What runs the coroutines of the test."""
        self._simulated = simulated
        self._stack = stack
        self._directory = directory
        self._url = ""
        self._processes = DriverProcesses(directory)
        stack.push_async_callback(self._processes.close)

    @property
    def simulated(self) -> SimulatedCluster:
        """What runs. Raise RuntimeError once it has ended."""
        if self.is_closed:
            raise RuntimeError("this cluster has ended, with the test or the fixture that it was made for")
        return self._simulated

    @property
    def client(self) -> Client:
        """An administrator's, in process."""
        return self.simulated.client

    async def close(self) -> None:
        """End everything that was started. Idempotent."""
        self.is_closed = True
        await self._stack.aclose()

    # What happens to it

    async def apply(self, *what: Applied) -> list[Any]:
        """Apply YAML text, a file or directory, or objects; let happen what follows. Raise what the server refuses."""
        made = [
            await self.client.apply(each, manager="drakit-testing", force=True)
            for source in what
            for each in objects_of(source)
        ]
        await self.settle()
        return made

    async def create(self, *documents: Mapping[str, Any] | Model) -> Any:
        """Create objects, generated names included, and let happen what follows; the last one as the server made it."""
        made = [await self.client.create(each) for each in documents]
        await self.settle()
        return made[-1] if made else None

    async def delete(self, kind: Resource[Any], name: str, *, grace: int | None = None, propagation: str = "") -> None:
        """Delete an object, and let happen what follows."""
        namespace, name = _place(kind, name)
        await self.client.delete(kind, name, namespace=namespace, grace=grace, propagation=propagation)
        await self.settle()

    async def set_status(self, kind: Resource[Any], name: str, status: Mapping[str, Any]) -> None:
        """Merge into the status of an object, as the component that reports it would; let happen what follows."""
        await self.client.patch_status(await self.get(kind, name), status)
        await self.settle()

    async def add_node(self, name: str, **options: Unpack[NodeOptions]) -> None:
        """Add a node: with `devices` per driver, with `drivers` of your own; else with those of the profile."""
        await self.simulated.add_node(name, MachinePlan(**options))
        await self.settle()

    async def remove_node(self, name: str) -> None:
        """Switch a node off and delete it."""
        await self.power_off(name)
        await self.client.delete(NODES, name)
        await self.settle()

    async def power_off(self, name: str) -> None:
        """Switch a node off; its Node object stays."""
        self.node(name)
        await self._processes.power_off(name)
        await self.simulated.stop_node(name)

    async def reboot(self, name: str) -> None:
        """Containers and what is in memory are gone; agent and drivers come back."""
        self.node(name)
        commands = await self._processes.power_off(name)
        await self.simulated.restart_node(name)
        await self._processes.power_on(self.node(name), commands)

    # Drivers that are processes

    async def start_driver(self, node: str, *command: str, env: Mapping[str, str] | None = None) -> str:
        """Start a driver on a node, as a process in any language; its name, when it has registered over its socket.

        `{kubeconfig}`, `{node_name}`, `{plugin_dir}`, `{registry_dir}`, `{cdi_dir}` and `{pod_uid}` are filled in. It
        ends with the cluster. Time goes by itself from now on.
        """
        driver = await self._processes.start(self.node(node), command, await self.kubeconfig(), env or {})
        self._raise_failures()
        return driver

    async def stop_driver(self, node: str, driver: str) -> int:
        """Ask the process to end (SIGTERM); its exit code."""
        return await self._processes.stop(node, driver)

    async def kill_driver(self, node: str, driver: str) -> None:
        """The driver, in this process or in one of its own, is gone at once; its socket stays."""
        sockets = self.node(node).machine.sockets
        if driver in sockets.paths():
            sockets.break_off(driver)
        else:
            await self._processes.kill(node, driver)

    def driver_output(self, node: str, driver: str) -> str:
        """What the process has printed."""
        return self._processes.output(node, driver)

    async def publish(
        self, node: str, devices: Sequence[Device] | Sequence[DevicePool] | str, *, driver: str = ""
    ) -> None:
        """A driver of a node publishes other devices from now on: objects, or YAML of a list of devices."""
        hardware = self._hardware(node, driver)
        given = [from_plain(Device, each) for each in yaml.safe_load(devices)] if isinstance(devices, str) else devices
        self.node(node).machine.install(hardware.driver, given)
        await self.settle()

    async def taint(self, node: str, device: str, *taints: DeviceTaint | str, driver: str = "") -> None:
        """The driver taints a device: `key=value:Effect` or objects; without any, its taints go."""
        self._hardware(node, driver, device).taint(device, *(taint_of(each) for each in taints))
        await self.settle()

    async def break_device(self, node: str, device: str, reason: str = "broken", *, driver: str = "") -> None:
        """The device is unhealthy: its driver says so, and taints it with NoExecute. An empty reason mends it."""
        self._hardware(node, driver, device).break_device(device, reason)
        await self.settle()

    async def inject(self, fault: Fault) -> None:
        """Let something go wrong: see `drakit.testing.faults`."""
        await fault(self)
        await self.settle()

    # Time

    async def advance(self, seconds: float) -> None:
        """Let that much time go by; what is due in it happens at its time."""
        if not 0 <= seconds < math.inf:
            raise ValueError(f"time goes forward, by a number of seconds: not by {seconds}")
        self._raise_failures()
        await self.loop.advance(seconds)
        self._raise_failures()

    async def settle(self) -> None:
        """Let happen all that happens without time going on."""
        self._raise_failures()
        await self.loop.settle()
        self._raise_failures()

    async def wait_for(self, pod: str, phase: str = "Running", *, seconds: float | None = None) -> Pod:
        """Let time go by until a pod is in that phase (`Deleted`: is gone). Fail with why it is not."""
        if phase not in PHASES:
            raise ValueError(f"{phase!r} is no phase of a pod: {', '.join(PHASES)}")
        found: Pod | None = None

        async def arrived() -> bool:
            nonlocal found
            found = await self.find_pod(pod)
            return phase == "Deleted" if found is None else found.status.phase == phase

        if (waited := await self._until(arrived, seconds)) is not None:
            state = "does not exist" if found is None else f"is {found.status.phase}"
            raise AssertionError(f"pod {pod} {state} after {waited:g} s, not {phase}\n{await self.explain(pod)}")
        return found or Pod()

    async def wait_until(
        self, holds: Callable[[], Awaitable[bool]], what: str, *, seconds: float | None = None
    ) -> None:
        """Let time go by until something holds. Fail with why pods wait, and the events."""
        if (waited := await self._until(holds, seconds)) is not None:
            raise AssertionError(f"not so after {waited:g} s: {what}\n{await self.state()}")

    async def _until(self, holds: Callable[[], Awaitable[bool]], seconds: float | None) -> float | None:
        """How long it was waited for in vain; None if it holds."""
        most = patience(self.loop, seconds)
        end = self.loop.time() + most
        await self.settle()
        while not await holds():
            if not await self.pass_time(end):
                return most
        return None

    async def pass_time(self, end: float) -> bool:
        """To the next timer; where time goes by itself, a moment of it. False at the end."""
        if self.loop.time() >= end:
            return False
        if self.loop.flows:
            await asyncio.sleep(_GLANCE)
            self._raise_failures()
            return True
        due = self.loop.next_timer()
        await self.advance(max(min(end, due if due is not None else end) - self.loop.time(), 0.0))
        return True

    # What a test looks at

    async def get(self, kind: Resource[T], name: str) -> T:
        """Raise NotFound."""
        namespace, name = _place(kind, name)
        return await self.client.get(kind, name, namespace=namespace)

    async def list(self, kind: Resource[T]) -> list[T]:
        """Of all namespaces."""
        return list((await self.client.list(kind)).items)

    async def pod(self, name: str) -> Pod:
        """Raise AssertionError when there is no such pod."""
        found = await self.find_pod(name)
        assert found is not None, await self._no_pod(name)
        return found

    async def find_pod(self, name: str) -> Pod | None:
        namespace, name = split_name(name)
        found = await self.client.find(PODS, name, namespace=namespace)
        return found.view if found is not None else None

    async def events(self, about: str = "") -> Sequence[Event]:
        """Events in the order in which they came; about the object of that name, or all."""
        found = sorted((each.view for each in await self.client.list(EVENTS)), key=_age)
        return [each for each in found if not about or _is_about(each, about)]

    async def allocations(self) -> Sequence[DeviceUse]:
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
        namespace, name = split_name(pod)
        objects = [
            each for kind in _EXPLAINED if await self.client.serves(kind) for each in await self.client.list(kind)
        ]
        try:
            found = explain_pod(ClusterObjects(objects, gates=self.simulated.plan.gates), name, namespace)
        except NotFound:
            return await self._no_pod(pod)
        return "\n".join([*explanation_lines(found), *(_line(each) for each in await self.events(name))])

    async def assert_pending(self, pod: str, because: str = "") -> None:
        """The pod waits; what `explain` says of it has that text."""
        found, why = await self.pod(pod), await self.explain(pod)
        assert found.status.phase == "Pending", f"pod {pod} is {found.status.phase}, not Pending\n{why}"
        assert because in why, f"{because!r} is not why pod {pod} waits:\n{why}"

    async def state(self) -> str:
        """Why pods wait, the first few of them, and all events: for failures."""
        pods = [each.view for each in await self.client.list(PODS)]
        waiting = [each.metadata for each in pods if each.status.phase == "Pending"][:_MOST_EXPLAINED]
        told = [await self.explain(f"{each.namespace}/{each.name}") for each in waiting]
        return "\n".join([*told, *(_line(each) for each in await self.events())])

    async def _no_pod(self, name: str) -> str:
        pods = [each.view.metadata for each in await self.client.list(PODS)]
        there = ", ".join(f"{each.namespace}/{each.name}" for each in pods)
        return f"there is no pod {name}; " + (f"pods are {there}" if there else "there are no pods at all")

    # For others

    async def serve(self) -> str:
        """The address of the server for clients of any language; from now on time also goes by itself.

        Whoever brings no credentials is an administrator: the address is one of this machine only.
        """
        server = Trusting(self.simulated.server)
        if not self._url:
            bound = socket.create_server(("127.0.0.1", 0))
            bound.setblocking(False)
            await self._stack.enter_async_context(Listener(server, bound).running())
            self._url = f"http://127.0.0.1:{bound.getsockname()[1]}"
        self.loop.flow()
        return self._url

    async def kubeconfig(self) -> Path:
        """A file for `KUBECONFIG`, which goes with the cluster."""
        path = self._directory / "kubeconfig"
        write_kubeconfig(path, ServerAccess(url=await self.serve()))
        return path

    def node(self, name: str) -> RunningNode:
        """Raise AssertionError when no such node runs."""
        nodes = self.simulated.nodes
        assert name in nodes, f"there is no node {name}; nodes are {', '.join(nodes) or 'none'}"
        return nodes[name]

    def _hardware(self, node: str, driver: str, device: str = "") -> Hardware:
        """Of the driver that is named, has the device, or is the first."""
        found = self.node(node).machine.hardware
        assert found, f"node {node} has no simulated devices"
        assert not driver or driver in found, f"node {node} has no simulated driver {driver}: {', '.join(found)}"
        chosen = [found[driver]] if driver else list(found.values())
        names = {name: each for each in reversed(chosen) for name in each.device_names()}
        assert not device or device in names, f"node {node} has no device {device}; devices are {', '.join(names)}"
        return names[device] if device else chosen[0]

    def _raise_failures(self) -> None:
        """Raise RuntimeError once the cluster has ended, AssertionError when a part of it has."""
        for error in self.simulated.failures():
            raise AssertionError(f"a component of the cluster has ended: {error}") from error


@asynccontextmanager
async def running(plan: ClusterPlan) -> AsyncIterator[AsyncCluster]:
    """A cluster on the running loop, which is a SteppedLoop. Whatever it started ends with it."""
    async with AsyncExitStack() as outer:
        outer.enter_context(rare_collections())
        directory = Path(outer.enter_context(scratch_directory()))
        stack = AsyncExitStack()
        made = AsyncCluster(await stack.enter_async_context(running_cluster(plan)), stack, directory)
        outer.push_async_callback(made.close)
        yield made


class Trusting:
    """Takes whoever brings no credentials for an administrator."""

    def __init__(self, server: Handler) -> None:
        self._server = server

    async def handle(self, request: Request) -> Response:
        if "authorization" not in request.headers:
            request = msgspec.structs.replace(request, user=ADMIN)
        return await self._server.handle(request)


def patience(loop: SteppedLoop, seconds: float | None) -> float:
    if seconds is not None:
        return seconds
    return REAL_PATIENCE if loop.flows else PATIENCE


def _place(kind: Resource[Any], name: str) -> tuple[str, str]:
    namespace, rest = split_name(name)
    return (namespace, rest) if kind.kind.namespaced else ("", name)


def _is_about(event: Event, name: str) -> bool:
    namespace, _, rest = name.rpartition("/")
    return event.involved_object.name == rest and (not namespace or event.involved_object.namespace == namespace)


def _age(event: Event) -> tuple[Any, int]:
    """When it came; of one instant, in the order of writes."""
    return event.metadata.creation_timestamp, int(event.metadata.resource_version)


def _line(event: Event) -> str:
    return f"{event.type} {event.reason} {event.involved_object.name}: {event.message}"
