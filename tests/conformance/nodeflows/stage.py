"""A server, a node agent, scripted drivers and a scripted runtime, on one virtual clock.

In:  a flow.
Out: what was seen, in order: calls to drivers and to the runtime, pod states, events.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from prometheus_client import CollectorRegistry

from drakit.api.exchange import User
from drakit.apiserver import build_server
from drakit.base.clock import FakeClock
from drakit.base.gates import FeatureGates
from drakit.base.quantity import Quantity
from drakit.client import CLAIMS, EVENTS, PODS, SLICES, Client, ConnectionFailed, InProcess
from drakit.nodeagent.agent import NodeAgent
from drakit.nodeagent.node.facts import MachineFacts
from drakit.nodeagent.node.usage import MachineReader
from drakit.nodeagent.settings import AgentPaths, AgentSettings
from drakit.store import MemoryStore
from tests.builders.cluster import settings
from tests.conformance.nodeflows.names import Uids
from tests.conformance.nodeflows.runtime import CriCall, ScriptedRuntime
from tests.conformance.nodeflows.scripted import Call, DriverStage, ScriptedDialer, ScriptedDirectory, ScriptedDriver

Plain = dict[str, Any]
NODE = "node-1"
NAMESPACE = "default"
_STATUS = (
    "resourceClaimStatuses",
    "extendedResourceClaimStatus",
    "nodeAllocatableResourceClaimStatuses",
    "reason",
    "message",
)
_CONTAINER = (
    "name",
    "ready",
    "started",
    "restartCount",
    "state",
    "lastState",
    "allocatedResourcesStatus",
    "allocatedResources",
)
_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")


class Line:
    """The agent's way to the server, which may be cut."""

    in_process = True
    page_size = 0

    def __init__(self, handler: Any, user: User) -> None:
        self._inner = InProcess(handler, user)
        self.away = False

    async def handle(self, request: Any) -> Any:
        if self.away:
            raise ConnectionFailed("the server is away", sent=False)
        return await self._inner.handle(request)

    async def close(self) -> None:
        return


class Stage:
    """Everything of one flow. Time stands still but in `until` and `run_for`."""

    def __init__(self, flow: Plain, store: MemoryStore, clock: FakeClock, client: Client, root: Path, handler: Any):
        self.flow = flow
        self.store = store
        self.clock = clock
        self.client = client
        self.uids = Uids()
        self.calls: list[Call] = []
        self.cri: list[CriCall] = []
        self.merged: list[Call | CriCall] = []
        self.states: dict[str, list[Plain]] = {}
        self.deleted: list[str] = []
        self.events: list[tuple[str, str, str, str, str]] = []
        self.slices: list[tuple[str, str]] = []
        self.paths = AgentPaths.below(root)
        self.registry = CollectorRegistry()
        self.agent: NodeAgent | None = None
        self.drivers = DriverStage(clock, self.uids, self._log_call)
        self.directory = ScriptedDirectory()
        self.runtime = ScriptedRuntime(clock, self._log_cri, self._creation_failure, self.answered)
        rows = [step["status"] for step in flow["steps"] if step.get("saw") == "pod status"]
        self._tells_reasons = not rows or any("reason" in row or "message" in row for row in rows)
        self.changes: Plain = {}
        """Settings of the agent that differ from the usual, from its next start on."""
        self.usage: MachineReader | None = None
        self.dies_after = 0
        """The agent dies in the call of this number; zero for never."""
        self._handler = handler
        self.line = Line(handler, User(name=""))
        self._task: asyncio.Task[None] | None = None
        self._watches: list[asyncio.Task[None]] = []

    def _log_call(self, call: Call) -> None:
        self.calls.append(call)
        self._log(call)

    def _log_cri(self, call: CriCall) -> None:
        self.cri.append(call)
        self._log(call)

    def _log(self, call: Call | CriCall) -> None:
        self.merged.append(call)
        if len(self.merged) == self.dies_after and self._task is not None:
            self._task.cancel()  # the call is made, and its answer never heard

    async def answered(self) -> None:
        """A call was made and is answered now: whoever died in it makes no other one."""
        if len(self.merged) == self.dies_after:
            await asyncio.Event().wait()

    # The agent

    @property
    def gates(self) -> FeatureGates:
        """All on, but for those that the flow says are off."""
        gates = FeatureGates.all_on()
        off = {name for name in gates.on if re.search(rf"{name}\b[^,;:]*\boff\b", self.flow["about"])}
        return FeatureGates(gates.on - off)

    async def start_agent(self) -> None:
        user = User(name=f"system:node:{NODE}", groups=("system:nodes", "system:authenticated"))
        self.line = Line(self._handler, user)
        machine = MachineFacts(capacity=recorded_capacity(self.flow), internal_ip="127.0.0.1", hostname=NODE)
        self.registry = CollectorRegistry()
        paths = AgentPaths(
            **{name: getattr(self.paths, name) for name in AgentPaths.__slots__} | {"pod_resources": None}
        )
        self.agent = NodeAgent(
            Client(self.line, clock=self.clock),
            self.runtime,
            replace(AgentSettings(NODE, paths, machine, self.gates, serves_device_plugins=False), **self.changes),
            clock=self.clock,
            dialer=ScriptedDialer(self.drivers, self.directory),
            directory=self.directory,
            registry=self.registry,
            random=Random(1),
            flush=lambda _: None,
            usage=self.usage,
        )
        self._task = asyncio.create_task(self.agent.run())
        await self.settle()

    async def stop_agent(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            ended = await asyncio.gather(task, return_exceptions=True)
            for each in ended:
                if isinstance(each, Exception):
                    raise each
        self.agent = None
        await self.settle()

    @property
    def is_retrying(self) -> bool:
        return self.agent is not None and self._task is not None and self.agent.workers.is_retrying

    @property
    def is_dead(self) -> bool:
        return self._task is not None and self._task.done()

    def check_alive(self) -> None:
        if self._task is not None and self._task.done():
            self._task.result()

    # Time

    async def settle(self) -> None:
        """Let everything happen that happens without time."""
        quiet, before = 0, (-1, -1)
        while quiet < 3:
            for _ in range(60):
                await asyncio.sleep(0)
            now = (await self.store.revision(), len(self.merged))
            quiet = quiet + 1 if now == before else 0
            before = now

    async def run_for(self, seconds: float) -> None:
        await self.until(lambda: False, limit=seconds)

    async def until(self, holds: Callable[[], bool], *, limit: float) -> bool:
        """Let time go on, from deadline to deadline, until that holds."""
        end = self.clock.monotonic() + limit
        await self.settle()
        while not holds():
            deadline = self.clock.next_deadline()
            if deadline is None or deadline > end:
                self.clock.advance(max(end - self.clock.monotonic(), 0.0))
                await self.settle()
                return holds()
            self.clock.advance(max(deadline - self.clock.monotonic(), 0.0))
            await self.settle()
        return True

    # What the recorder saw

    async def watch(self) -> None:
        for work in (self._watch_pods(), self._watch_events(), self._watch_slices()):
            self._watches.append(asyncio.create_task(work))
        await self.settle()

    async def _watch_pods(self) -> None:
        async with self.client.watch(PODS) as changes:
            async for change in changes:
                pod = change.object
                if pod is None or change.type == "BOOKMARK":
                    continue
                name = pod.view.metadata.name
                state = shown_status(self.uids.recorded(pod.document))
                if not self._tells_reasons:
                    state = {key: value for key, value in state.items() if key not in ("reason", "message")}
                if not self.states.setdefault(name, []) or self.states[name][-1] != state:
                    self.states[name].append(state)
                if change.type == "DELETED":
                    self.deleted.append(name)

    async def _watch_events(self) -> None:
        async with self.client.watch(EVENTS) as changes:
            async for change in changes:
                if change.object is None or change.type == "BOOKMARK":
                    continue
                document = self.uids.recorded(change.object.document)
                about = document["involvedObject"]
                told = (document["type"], document["reason"], document["message"], about.get("fieldPath", ""))
                self.events.append((f"{about['kind']}/{about['name']}", *told))

    async def _watch_slices(self) -> None:
        async with self.client.watch(SLICES) as changes:
            async for change in changes:
                if change.object is not None and change.type in ("ADDED", "DELETED"):
                    self.slices.append((change.type, change.object.metadata.name))

    def metrics(self) -> Iterator[tuple[str, dict[str, str], float]]:
        for family in self.registry.collect():
            for sample in family.samples:
                yield sample.name, sample.labels, sample.value

    async def close(self) -> None:
        await self.stop_agent()
        for watch in self._watches:
            watch.cancel()
        await asyncio.gather(*self._watches, return_exceptions=True)
        await self.runtime.close()

    # The recording ahead

    def _creation_failure(self, pod: str, container: str) -> str:
        """Where the recorded runtime did not go on to start a container that it was to make, it had failed."""
        made = [c for c in self.cri if (c.method, c.pod, c.container) == ("CreateContainer", pod, container)]
        rows = [
            (index, row)
            for index, row in enumerate(self.flow["steps"])
            if row.get("saw") == "CRI call" and (row.get("pod"), row.get("container")) == (pod, container)
        ]
        creations = [place for place, (_, row) in enumerate(rows) if row["method"] == "CreateContainer"]
        if len(made) > len(creations):
            return ""
        place = creations[len(made) - 1]
        if place + 1 < len(rows) and rows[place + 1][1]["method"] == "StartContainer":
            return ""
        for row in self.flow["steps"][rows[place][0] :]:
            if row.get("saw") == "event" and row["reason"] == "Failed":
                return str(row["message"]).removeprefix("Error: ")
        return ""


def recorded_capacity(flow: Plain) -> dict[str, Quantity]:
    """Of the recorder's machine, as far as the recording tells: two cpus, and what refusals name."""
    capacity = {
        "cpu": Quantity.of(2),
        "memory": Quantity.parse("8Gi"),
        "ephemeral-storage": Quantity.parse("100Gi"),
        "pods": Quantity.of(110),
    }
    for step in flow["steps"]:
        told = re.search(r"enough resource: (\S+), requested: .*capacity: (\d+)", str(step.get("message", "")))
        if told and told[1] in capacity:
            capacity[told[1]] = Quantity.parse(f"{told[2]}m" if told[1] == "cpu" else told[2])
    return capacity


def shown_status(pod: Plain) -> Plain:
    """What the recorder kept of a pod."""
    status, metadata = pod.get("status") or {}, pod["metadata"]
    shown: Plain = {"phase": status.get("phase", ""), "conditions": _conditions(status)}
    for key in ("initContainerStatuses", "containerStatuses"):
        if status.get(key):
            shown[key] = [_container(each) for each in status[key]]
    shown |= {key: status[key] for key in _STATUS if status.get(key)}
    for key in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        if metadata.get(key) is not None:
            shown[key] = metadata[key]
    made: Plain = timeless(shown)
    return made


def _conditions(status: Plain) -> list[Plain]:
    found = {each["type"]: each for each in status.get("conditions") or ()}
    return [
        {key: found[type_][key] for key in ("type", "status", "reason", "message") if found[type_].get(key)}
        for type_ in _CONDITIONS
        if type_ in found
    ]


def _container(status: Plain) -> Plain:
    shown = {key: status[key] for key in _CONTAINER if key in status and status[key] not in (None, [])}
    return {"lastState": {}, "state": {}, **shown}


def timeless(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: timeless(each, name) for name, each in value.items()}
    if isinstance(value, list):
        return [timeless(each) for each in value]
    if key in ("startedAt", "finishedAt", "deletionTimestamp") and value is not None:
        return "<time>"
    if key == "containerID":
        return "fake://<container-id>"
    return value


@asynccontextmanager
async def stage(flow: Plain, root: Path) -> AsyncIterator[Stage]:
    clock = FakeClock()
    async with MemoryStore(clock=clock) as store:
        rules = settings(FeatureGates.all_on(), ("NodeRestriction",))
        async with await build_server(store, clock=clock, settings=rules) as server:
            made = Stage(flow, store, clock, Client(InProcess(server), clock=clock), root, server)
            try:
                await made.start_agent()
                await made.watch()
                yield made
            finally:
                await made.close()


__all__ = ["CLAIMS", "NAMESPACE", "NODE", "ScriptedDriver", "Stage", "shown_status", "stage", "timeless"]
