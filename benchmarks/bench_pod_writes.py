"""What the writes of one pod cost when everything runs in one process. Run as `python -m benchmarks.bench_pod_writes`.

With `steps` behind it only steps of the interpreter are counted, with a number also that many of the dearest functions.

The writes are those that a pod with a claim from a template takes, from its creation until it is bound, by the client
in process, with informers of pods, claims and nodes that follow. CPU time is that of the whole process: the server, the
store, the watches, the informers; so are the steps.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvloop
from msgspec.structs import replace

from benchmarks.report import publish
from benchmarks.steps import Steps
from drakit.api import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceClaim,
    DeviceRequest,
    DeviceRequestAllocationResult,
    ExactDeviceRequest,
    ObjectMeta,
    OwnerReference,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
    ResourceClaimStatus,
)
from drakit.apiserver import Settings, build_server
from drakit.base.nodeselectors import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from drakit.client import CLAIMS, NODES, PODS, STRATEGIC, Client, InProcess, bind
from drakit.informers import Informers
from drakit.store import MemoryStore, SQLiteStore, Store

PODS_MADE = 2_000
WORKERS = 32
ROUNDS = 3
NODE_COUNT = 100
NAMESPACE = "default"
WARM = 60
COUNTED = 40
COLUMNS = ("write", "steps", "memory, CPU", "memory, wall", "SQLite, CPU", "SQLite, wall")
FINALIZER = "resource.kubernetes.io/delete-protection"

Plain = dict[str, Any]
Step = Callable[[int], Awaitable[object]]
Cost = tuple[float, float]


def pod(number: int) -> Plain:
    use = {"name": "resource", "resourceClaimTemplateName": "template"}
    container = {
        "name": "pause",
        "image": "registry.k8s.io/pause:3.10",
        "resources": {"claims": [{"name": "resource"}]},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number}", "namespace": NAMESPACE},
        "spec": {"containers": [container], "resourceClaims": [use]},
    }


def claim(number: int, owner: ObjectMeta) -> ResourceClaim:
    request = DeviceRequest(name="gpu", exactly=ExactDeviceRequest(device_class_name="gpu.example.com"))
    reference = OwnerReference(
        api_version="v1", kind="Pod", name=owner.name, uid=owner.uid, controller=True, block_owner_deletion=True
    )
    return ResourceClaim(
        metadata=ObjectMeta(
            generate_name=f"pod-{number}-resource-",
            namespace=NAMESPACE,
            annotations={"resource.kubernetes.io/pod-claim-name": "resource"},
            owner_references=(reference,),
        ),
        spec=ResourceClaimSpec(devices=DeviceClaim(requests=(request,))),
    )


def allocated(number: int, user: ObjectMeta) -> ResourceClaimStatus:
    node = f"node-{number % NODE_COUNT}"
    device = DeviceRequestAllocationResult(
        request="gpu", driver="gpu.example.com", pool=node, device=f"gpu-{number // NODE_COUNT}"
    )
    field = NodeSelectorRequirement(key="metadata.name", operator="In", values=(node,))
    return ResourceClaimStatus(
        allocation=AllocationResult(
            devices=DeviceAllocationResult(results=(device,)),
            node_selector=NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(field,)),)),
            allocation_timestamp="2026-01-01T00:00:00Z",
        ),
        reserved_for=(ResourceClaimConsumerReference(resource="pods", name=user.name, uid=user.uid),),
    )


def event(number: int, about: ObjectMeta) -> Plain:
    now = "2026-01-01T00:00:00.000000Z"
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"pod-{number}.{number:016x}", "namespace": NAMESPACE},
        "regarding": {
            "apiVersion": "v1", "kind": "Pod", "name": about.name, "namespace": about.namespace, "uid": about.uid,
            "resourceVersion": about.resource_version,
        },
        "reason": "Scheduled",
        "action": "Binding",
        "type": "Normal",
        "eventTime": now,
        "note": f"Successfully assigned {NAMESPACE}/{about.name} to node-{number % NODE_COUNT}",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-host",
    }  # fmt: skip


class Writes:
    """The writes in their order; each works on what the informers have of the ones before it."""

    def __init__(self, client: Client, informers: Informers) -> None:
        self._scheduler = client
        self._pods = informers.of(PODS)
        self._claims = informers.of(CLAIMS)
        self._claims.add_index("pod", lambda found: [each.name for each in found.metadata.owner_references])
        informers.of(NODES)

    def steps(self) -> Sequence[tuple[str, Step]]:
        return (
            ("create the pod", self.create_pod),
            ("create the claim", self.create_claim),
            ("record the claim in the pod's status (strategic patch)", self.record),
            ("finalizer of the claim (update)", self.protect),
            ("allocation and reservation of the claim (update of its status)", self.allocate),
            ("bind the pod", self.bind),
            ("create the event", self.tell),
        )

    def _pod(self, number: int) -> Any:
        return self._pods.cache.named(f"pod-{number}", NAMESPACE)

    def _claim(self, number: int) -> ResourceClaim:
        return self._claims.by("pod", f"pod-{number}")[0]

    async def create_pod(self, number: int) -> None:
        await self._scheduler.create(pod(number))

    async def create_claim(self, number: int) -> None:
        await self._scheduler.create(claim(number, self._pod(number).view.metadata))

    async def record(self, number: int) -> None:
        made = [{"name": "resource", "resourceClaimName": self._claim(number).metadata.name}]
        patch = {"status": {"resourceClaimStatuses": made}}
        await self._scheduler.patch(self._pod(number), patch, kind=STRATEGIC, subresource="status")

    async def protect(self, number: int) -> None:
        found = self._claim(number)
        await self._scheduler.update(replace(found, metadata=replace(found.metadata, finalizers=(FINALIZER,))))

    async def allocate(self, number: int) -> None:
        status = allocated(number, self._pod(number).view.metadata)
        await self._scheduler.update_status(replace(self._claim(number), status=status))

    async def bind(self, number: int) -> None:
        await bind(self._scheduler, self._pod(number), f"node-{number % NODE_COUNT}")

    async def tell(self, number: int) -> None:
        await self._scheduler.create(event(number, self._pod(number).view.metadata))


class Following:
    """Waits until the informers have been told of as many changes as were written."""

    def __init__(self, informers: Informers) -> None:
        self._seen = 0
        self._wanted = 0
        self._done = asyncio.Event()
        for resource in (PODS, CLAIMS):
            informers.of(resource).subscribe(self._count)

    def _count(self, _old: object, _new: object) -> None:
        self._seen += 1
        if self._seen >= self._wanted:
            self._done.set()

    async def have_seen(self, changes: int) -> None:
        self._wanted = changes
        if self._seen < changes:
            self._done.clear()
            await self._done.wait()


async def cost_of(step: Step, following: Following, changes: int) -> Cost:
    """CPU and wall seconds of one write, when some workers share the work; informers catch up at the end."""
    numbers = iter(range(PODS_MADE))

    async def work() -> None:
        for number in numbers:
            await step(number)
            await asyncio.sleep(0)  # a store in memory never waits

    cpu, wall = time.process_time(), time.perf_counter()
    await asyncio.gather(*(work() for _ in range(WORKERS)))
    await following.have_seen(changes)
    return (time.process_time() - cpu) / PODS_MADE, (time.perf_counter() - wall) / PODS_MADE


@asynccontextmanager
async def a_client(store: Store) -> AsyncIterator[Client]:
    client = Client(InProcess(await build_server(store, settings=Settings())), user_agent="drakit-benchmark")
    for number in range(NODE_COUNT):
        await client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{number}"}})
    await client.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})
    yield client


async def measure(store: Store) -> dict[str, Cost]:
    costs: dict[str, Cost] = {}
    async with a_client(store) as client:
        informers = Informers(client)
        writes, following = Writes(client, informers), Following(informers)
        async with informers.running():
            changes = 0
            for name, step in writes.steps():
                changes += 0 if step == writes.tell else PODS_MADE
                costs[name] = await cost_of(step, following, changes)
    return costs


async def best(make: Callable[[int], Awaitable[Store]]) -> dict[str, Cost]:
    """The best of some rounds, each with a store of its own."""
    found: dict[str, Cost] = {}
    for number in range(ROUNDS):
        async with await make(number) as store:
            for name, (cpu, wall) in (await measure(store)).items():
                before = found.get(name, (cpu, wall))
                found[name] = min(cpu, before[0]), min(wall, before[1])
    return found


async def steps_of_writes() -> dict[str, Steps]:
    """Steps of each kind of write, one by one on a server that has seen some: in memory, informers included."""
    counted: dict[str, Steps] = {}
    async with MemoryStore() as store, a_client(store) as client:
        informers = Informers(client)
        writes, following = Writes(client, informers), Following(informers)
        async with informers.running():
            changes = 0
            for name, step in writes.steps():
                followed = step != writes.tell
                for number in range(WARM):
                    await step(number)
                await following.have_seen(changes + WARM * followed)
                with Steps() as counted[name]:
                    for number in range(WARM, WARM + COUNTED):
                        await step(number)
                    await following.have_seen(changes + (WARM + COUNTED) * followed)
                changes += (WARM + COUNTED) * followed
    return counted


async def run(directory: Path) -> list[list[str]]:
    async def in_memory(_number: int) -> Store:
        return MemoryStore()

    async def in_file(number: int) -> Store:
        return await SQLiteStore.open(directory / f"{number}.db")

    steps = {name: found.total // COUNTED for name, found in (await steps_of_writes()).items()}
    memory, sqlite = await best(in_memory), await best(in_file)
    rows = [[name, f"{steps[name]:,}", *map(micro, (*memory[name], *sqlite[name]))] for name in memory]
    sums = [sum(costs[name][part] for name in costs) for costs in (memory, sqlite) for part in (0, 1)]
    return [*rows, ["all writes of a pod", f"{sum(steps.values()):,}", *map(micro, sums)]]


def micro(seconds: float) -> str:
    return f"{seconds * 1e6:,.0f} µs"


def tell_steps(functions: int) -> None:
    found = asyncio.run(steps_of_writes())
    for name, steps in found.items():
        print(f"{steps.total / COUNTED:9,.0f}  {name}")
        for place, count in steps.dearest(functions):
            print(f"{count / COUNTED:17,.1f}  {place}")
    print(f"{sum(steps.total for steps in found.values()) / COUNTED:9,.0f}  all writes of a pod")


def main() -> None:
    if sys.argv[1:2] == ["steps"]:
        tell_steps(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
        return
    with tempfile.TemporaryDirectory() as directory:
        rows = uvloop.run(run(Path(directory)))
    publish("bench_pod_writes", f"The writes of a pod in one process, {WORKERS} workers", COLUMNS, rows)


if __name__ == "__main__":
    main()
