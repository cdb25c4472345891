"""What a scheduler and a server cost by the number of nodes, up to 20,000 with 160,000 devices, simulated in process.

Run as `python -m benchmarks scale`. Each size has a process of its own, so that memory can be told apart. Nodes, slices
and half of all devices' claims are put into the store as they would have been written; then pods with claims come.
"""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import uvloop

from benchmarks.report import publish
from benchmarks.scheduling import manifests
from benchmarks.scheduling.clusters import Cluster, Measured, cluster, percentile
from drakit.api.objects.plain import Plain
from drakit.apiserver.admission.plugins.deviceledger import DeviceLedger, holds_of
from drakit.apiserver.kinds.served import known_kind
from drakit.apiserver.storage.objects import storage_form
from drakit.apiserver.storage.objectstore import key_of
from drakit.store import Store

SIZES = (5_000, 10_000, 20_000)
DEVICES = 8
POD_COUNT = 400
CHECKS = 2_000
PLACE, HELD = "default", "held"
_MIB = 1024.0
_NODE, _SLICE, _CLAIM = (
    known_kind("v1", "Node"),
    known_kind("resource.k8s.io/v1", "ResourceSlice"),
    known_kind("resource.k8s.io/v1", "ResourceClaim"),
)


class Cost(msgspec.Struct, frozen=True):
    """Of one size: memory in MiB of the objects stored, then with server, scheduler and ledger; the rest in seconds."""

    nodes: int
    stored: float
    whole: float
    start_cpu: float
    pod_cpu: float
    attempt: float
    slowest: float
    check: float


def documents(nodes: int) -> Iterator[tuple[Any, str, Plain]]:
    """Nodes, their slices, and claims that hold every second device: kind, namespace, object."""
    for number in range(nodes):
        yield _NODE, "", manifests.node(number)
        yield _SLICE, "", manifests.local_slice(number, DEVICES)
        for device in range(0, DEVICES, 2):
            yield _CLAIM, HELD, _held(number, device)


def _held(node: int, device: int) -> Plain:
    made = manifests.claim(node * DEVICES + device, HELD)
    where = f"node-{node}"
    field = {"key": "metadata.name", "operator": "In", "values": [where]}
    result = {"request": "req-0", "driver": manifests.DRIVER, "pool": where, "device": f"instance-{device}"}
    made["status"] = {
        "allocation": {
            "devices": {"results": [result]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
        }
    }
    return made


async def fill(store: Store, nodes: int) -> None:
    for number, (kind, place, document) in enumerate(documents(nodes)):
        about = document["metadata"]
        about |= {"uid": f"00000000-0000-4000-8000-{number:012d}", "creationTimestamp": "2026-01-01T00:00:00Z"}
        if place:
            about["namespace"] = place
        await store.create(key_of(kind, place, about["name"]), storage_form(kind, document))
        if number % 1000 == 0:
            await asyncio.sleep(0)


def memory() -> float:
    """MiB that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _MIB


async def measure(nodes: int) -> Cost:
    before = memory()
    filled: list[float] = []

    async def prepare(store: Store) -> None:
        await fill(store, nodes)
        filled.extend((memory() - before, time.process_time()))

    async with cluster(prepare=prepare) as made:
        stored, start_cpu = filled[0], time.process_time() - filled[1]
        await made.create([manifests.device_class()])
        placed = await _place(made)
        check = _check(nodes)
        return Cost(
            nodes=nodes,
            stored=stored,
            whole=memory() - before,
            start_cpu=start_cpu,
            pod_cpu=placed.cpu / placed.pods,
            attempt=percentile(placed.attempts, 0.5),
            slowest=percentile(placed.attempts, 0.99),
            check=check,
        )


async def _place(made: Cluster) -> Measured:
    await made.create(manifests.claim(number, PLACE) for number in range(POD_COUNT))
    users = [manifests.pod_of_claim(f"pod-{each}", PLACE, f"test-claim-{each}") for each in range(POD_COUNT)]
    return await made.place(users)


def _check(nodes: int) -> float:
    """Seconds of CPU for one question to the ledger of owners, which knows all devices."""
    ledger = DeviceLedger()
    for kind, _, document in documents(nodes):
        if kind is not _NODE:
            ledger.put(kind, document)
    wanted = [holds_of(_held(number % nodes, 1)) for number in range(CHECKS)]
    for each in wanted:  # each pool is read once in its life
        ledger.overdraft((PLACE, "new"), each, each)
    start = time.process_time()
    for each in wanted:
        if ledger.overdraft((PLACE, "new"), each, each) is not None:
            raise AssertionError("the device is free")
    return (time.process_time() - start) / CHECKS


def cells(cost: Cost) -> tuple[str, ...]:
    return (
        f"{cost.nodes:,}",
        f"{cost.nodes * DEVICES:,}",
        f"{cost.stored:,.0f} MiB",
        f"{cost.whole:,.0f} MiB",
        f"{cost.start_cpu:.1f} s",
        f"{cost.pod_cpu * 1e3:.2f} ms",
        f"{cost.attempt * 1e3:.2f} ms",
        f"{cost.slowest * 1e3:.2f} ms",
        f"{cost.check * 1e6:.1f} µs",
    )


def main() -> None:
    rows = []
    for nodes in SIZES:
        done = subprocess.run([sys.executable, "-m", "benchmarks.scale", str(nodes)], capture_output=True, check=True)
        rows.append(cells(msgspec.json.decode(done.stdout, type=Cost)))
    columns = (
        *("nodes", "devices", "memory, stored", "memory, all", "CPU to start"),
        *("CPU per pod", "attempt p50", "p99", "ownership check"),
    )
    publish("scale", "One scheduler and one server by size, half of all devices in use", columns, rows)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.stdout.buffer.write(msgspec.json.encode(uvloop.run(measure(int(sys.argv[1])))))
    else:
        main()
