"""The workloads: what is there before, which pods are measured.

Names and parameters are those of Kubernetes' own scheduler benchmark. Where it runs a steady state (pods created,
awaited, deleted, again), so do we, for as long as it does.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from benchmarks.scheduling import manifests as make
from benchmarks.scheduling.clusters import Cluster, Measured
from drakit.api import ResourceClaim
from drakit.client import CLAIMS, SLICES

INIT, TEST = "init", "test"
STEADY_SECONDS = 10.0
STEADY_PODS = 10

Plain = dict[str, Any]
Run = Callable[[Cluster], Awaitable[Measured]]


class Workload(msgspec.Struct, frozen=True):
    name: str
    size: str
    run: Run
    upstream: str = ""
    target: float = 0.0


async def begin(it: Cluster, nodes: int, *rest: Plain, devices: int = 0) -> None:
    await it.create([make.namespace(INIT), make.namespace(TEST)])
    await it.create(make.node(number) for number in range(nodes))
    if devices:
        await it.create(make.local_slice(number, devices) for number in range(nodes))
    await it.create(rest)


def of_template(place: str, count: int, start: int = 0) -> list[Plain]:
    return [make.pod_of_template(f"test-dra-{number}", place) for number in range(start, start + count)]


def claim_templates(nodes: int, devices: int, *requests: Plain, extra: Sequence[Plain] = ()) -> Run:
    """Half of the pods first, the other half measured; the cluster ends full."""
    wanted = requests or (make.exactly("req-0"),)
    half = nodes * devices // 2

    async def run(it: Cluster) -> Measured:
        templates = [make.template(place, *wanted) for place in (INIT, TEST)]
        await begin(it, nodes, make.device_class(), *templates, *extra, devices=devices)
        await it.place(of_template(INIT, half))
        return await it.place(of_template(TEST, half))

    return run


async def _allocate(it: Cluster, count: int, where: Callable[[int], Plain]) -> None:
    """Claims that are allocated and used by nobody."""
    left, all_known = set(range(count)), asyncio.Event()

    def see(_old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        if new is not None and new.status.allocation is not None and new.metadata.namespace == INIT:
            left.discard(int(new.metadata.name.removeprefix("test-claim-")))
            if not left:
                all_known.set()

    await it.create(make.claim(number, INIT) for number in range(count))
    it.informers.of(CLAIMS).subscribe(see)
    for number in range(count):
        claim = await it.client.get(CLAIMS, f"test-claim-{number}", namespace=INIT)
        await it.client.patch_status(claim, {"allocation": where(number)})
    # Writes in memory leave nobody else a turn: the events of all claims would be dealt with while pods are measured.
    if count:
        await all_known.wait()


def _on_node(nodes: int) -> Callable[[int], Plain]:
    """The claims spread over all nodes."""

    def allocation(number: int) -> Plain:
        node = f"node-{number % nodes}"
        result = {"request": "req-0", "driver": make.DRIVER, "pool": node, "device": f"instance-{number // nodes}"}
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        return {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]}}

    return allocation


def _half_a_card(number: int) -> Plain:
    pool, device = f"resourceslice-{number}", "device-2-counters-1"
    result = {"request": "req-0", "driver": make.DRIVER, "pool": pool, "device": device}
    return {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [make.EVERYWHERE]}}


async def _steadily(it: Cluster, count: int) -> Measured:
    """Create pods, await them, delete them, again; the time of all of it counts."""
    start, cpu, rounds = time.perf_counter(), time.process_time(), 0
    latencies, attempts = list[float](), list[float]()
    while time.perf_counter() - start < STEADY_SECONDS:
        pods = of_template(TEST, count, rounds * count)
        placed = await it.place(pods)
        latencies += placed.latencies
        attempts += placed.attempts
        await it.remove(pods)
        rounds += 1
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    return Measured(rounds * count, seconds, cpu, tuple(latencies), tuple(attempts))


def steady_state(nodes: int, devices: int, allocated: int) -> Run:
    async def run(it: Cluster) -> Measured:
        wanted = make.template(TEST, make.exactly("req-0"))
        await begin(it, nodes, make.device_class(), wanted, devices=devices)
        await _allocate(it, allocated, _on_node(nodes))
        return await _steadily(it, STEADY_PODS)

    return run


def shared_claims(nodes: int, devices: int, pods: int, sharing: int) -> Run:
    """Claims with names, each shared by some pods."""

    async def run(it: Cluster) -> Measured:
        half = pods // 2
        await begin(it, nodes, make.device_class(), devices=devices)
        for place in (INIT, TEST):
            await it.create(make.claim(number, place) for number in range(half // sharing))

        def users(place: str) -> list[Plain]:
            return [
                make.pod_of_claim(f"test-dra-{number}", place, f"test-claim-{number // sharing}")
                for number in range(half)
            ]

        await it.place(users(INIT))
        return await it.place(users(TEST))

    return run


def extended_resources(nodes: int, devices: int, classes: int) -> Run:
    """Pods that name extended resources, which classes offer; all classes select all devices."""

    async def run(it: Cluster) -> Measured:
        named = [make.device_class(f"test-class-{each}", resource=f"example.com/gpu-{each}") for each in range(classes)]
        await begin(it, nodes, *named, devices=devices)

        def users(place: str) -> list[Plain]:
            amounts = [{f"example.com/gpu-{number % classes}": "1"} for number in range(nodes * devices // 2)]
            return [
                make.pod(f"test-dra-{number}", place, requests=amount, limits=amount)
                for number, amount in enumerate(amounts)
            ]

        await it.place(users(INIT))
        return await it.place(users(TEST))

    return run


def consumable_capacity(nodes: int, pools: int, pods: int) -> Run:
    """Two shares of 40Gi per pod, of devices with 80Gi that every node can reach."""
    policy = {"default": "1Gi", "validRange": {"min": "1Gi"}}
    device = {
        "name": "shareable-device",
        "allowMultipleAllocations": True,
        "capacity": {"memory": {"value": "80Gi", "requestPolicy": policy}},
    }
    expression = f'device.driver == "{make.DRIVER}" && device.allowMultipleAllocations == true'

    async def run(it: Cluster) -> Measured:
        asked = {"requests": {"memory": "40Gi"}}
        wanted = make.template(TEST, make.exactly("req-0", capacity=asked), make.exactly("req-1", capacity=asked))
        await begin(it, nodes, make.device_class(expression=expression), wanted)
        await it.create(make.wide_slice(number, devices=[device]) for number in range(pools))
        return await it.place(of_template(TEST, pods))

    return run


def partitionable(nodes: int, pools: int, pods: int) -> Run:
    """Two partitions of one card per pod; cards of four counters, half of each in use before."""

    def part(name: str, number: int, *counters: int) -> Plain:
        consumed = {f"counter{each}": {"value": "1"} for each in counters}
        return {
            "name": name,
            "attributes": {"dra.example.com/slice": {"int": number}},
            "capacity": {"counters": {"value": str(len(counters))}},
            "consumesCounters": [{"counterSet": "counter-set", "counters": consumed}],
        }

    def parts(number: int) -> list[Plain]:
        halves = [part("device-2-counters-1", number, 1, 2), part("device-2-counters-2", number, 3, 4)]
        return [*halves, *(part(f"device-1-counter-{each}", number, each) for each in (1, 2, 3, 4))]

    async def run(it: Cluster) -> Measured:
        counters = {f"counter{each}": {"value": "1"} for each in (1, 2, 3, 4)}
        sets = [{"name": "counter-set", "counters": counters}]
        wanted = make.template(TEST, make.exactly("req-0", count=2))
        together = {"matchAttribute": "dra.example.com/slice", "requests": ["req-0"]}
        wanted["spec"]["spec"]["devices"]["constraints"] = [together]
        await begin(it, nodes, make.device_class(), wanted)
        await it.create(make.wide_slice(number, "countersets-", sharedCounters=sets) for number in range(pools))
        await it.create(make.wide_slice(number, "devices-", devices=parts(number)) for number in range(pools))
        await _allocate(it, pools, _half_a_card)
        return await it.place(of_template(TEST, pods))

    return run


def partitionable_backtracking(nodes: int) -> Run:
    """Seven of eight partitions of a node's card per pod: the first is too large, so the search must give it back.

    Kubernetes has one card, one node and one pod here.
    """

    def part(number: int) -> Plain:
        sets = (("cpu", f"cpu{number}", "1"), ("mem", "mem", "20Gi" if number == 1 else "10Gi"))
        consumed = [
            {"counterSet": f"counter-set-for-{name}", "counters": {counter: {"value": amount}}}
            for name, counter, amount in sets
        ]
        return {"name": f"device-{number}", "consumesCounters": consumed}

    async def run(it: Cluster) -> Measured:
        cpus = {f"cpu{each}": {"value": "1"} for each in range(1, 9)}
        sets = [
            {"name": "counter-set-for-cpu", "counters": cpus},
            {"name": "counter-set-for-mem", "counters": {"mem": {"value": "70Gi"}}},
        ]
        await begin(it, nodes, make.device_class(), make.template(TEST, make.exactly("req-0", count=7)))
        await it.create(make.card_slice(number, "countersets", sharedCounters=sets) for number in range(nodes))
        devices = [part(number) for number in range(1, 9)]
        await it.create(make.card_slice(number, "devices", devices=devices) for number in range(nodes))
        return await it.place(of_template(TEST, nodes))

    return run


def publish_slices(nodes: int, devices: int) -> Run:
    """Until the scheduler's inventory has what the drivers published. Counted in slices, not pods."""

    async def run(it: Cluster) -> Measured:
        await begin(it, nodes)
        informer, all_known = it.informers.of(SLICES), asyncio.Event()
        # The scheduler subscribed first: what this one is told, the inventory has.
        informer.subscribe(lambda *_: all_known.set() if len(informer.cache) >= nodes else None)
        start, cpu = time.perf_counter(), time.process_time()
        await it.create(make.local_slice(number, devices) for number in range(nodes))
        await all_known.wait()
        return Measured(nodes, time.perf_counter() - start, time.process_time() - cpu)

    return run


FIRST_AVAILABLE = {
    "name": "req-0",
    "firstAvailable": [
        {"name": "sub-0", "deviceClassName": "no-devices-class"},
        {"name": "sub-1", "deviceClassName": make.CLASS},
    ],
}
NONE = make.device_class("no-devices-class", expression='device.driver == "no-such-driver.cdi.k8s.io"')
TOLERANT = make.exactly("req-0", tolerations=[{"key": "example.com/taint", "operator": "Exists"}])

TAINTED = make.taint_rule()
_FILL = "SchedulingWithResourceClaimTemplate"
_STEADY = "SteadyStateClusterResourceClaimTemplate"

WORKLOADS: tuple[Workload, ...] = (
    Workload(_FILL, "2000 pods, 100 nodes x 20", claim_templates(100, 20), "45 to 56", 560),
    Workload(_FILL, "5000 pods, 500 nodes x 10", claim_templates(500, 10), "31", 310),
    Workload(_STEADY, "500 nodes x 10, empty", steady_state(500, 10, 0)),
    Workload(_STEADY, "500 nodes x 10, half in use", steady_state(500, 10, 2500), "19 to 25", 250),
    Workload(_STEADY, "500 nodes x 10, all but 10 in use", steady_state(500, 10, 4990)),
    Workload("SchedulingWithResourceClaim", "2000 pods, 100 nodes x 4", shared_claims(100, 4, 2000, 5)),
    Workload("ExtendedResource, 25 classes", "2000 pods, 200 nodes x 10", extended_resources(200, 10, 25)),
    Workload("ExtendedResource, 50 classes", "2000 pods, 200 nodes x 10", extended_resources(200, 10, 50)),
    Workload("FirstAvailable", "2000 pods, 100 nodes x 20", claim_templates(100, 20, FIRST_AVAILABLE, extra=[NONE])),
    Workload("ConsumableCapacity", "2000 pods, 100 nodes, 2000 pools", consumable_capacity(100, 2000, 2000)),
    Workload("Partitionable", "2000 pods, 100 nodes, 2000 pools", partitionable(100, 2000, 2000)),
    Workload("PartitionableBacktracking", "500 pods, 500 nodes", partitionable_backtracking(500)),
    Workload("DeviceTaintToleration", "2000 pods, 100 nodes x 20", claim_templates(100, 20, TOLERANT, extra=[TAINTED])),
    Workload("PublishResourceSlices", "5000 nodes x 10 (slices)", publish_slices(5000, 10)),
)
