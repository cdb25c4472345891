"""What `python -m benchmarks compare` measures: short pieces of work, each in a process of its own.

Run with another checkout first on the path, this file measures that checkout: it uses nothing but the benchmarks and
the fronts of the rooms, which both sides have. Prints seconds of CPU time per piece of work.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

Case = Callable[[], float]
Plain = dict[str, Any]


def passes(kind: str, *, again: bool, selective: bool = False) -> float:
    """One filter pass over 500 nodes of 8 devices: for a template never seen, or for its next pod."""
    from benchmarks import allocator as bench

    used = {"half": (0, 2, 4, 6), "empty": (), "full": tuple(range(8))}[kind]
    wanted = bench.claim(bench.request("r", 1, *((bench.MODEL_AND_MEMORY,) if selective else ())))
    if kind == "empty":
        wanted = bench.claim(bench.request("r", 4), constraints=[{"matchAttribute": bench.ROOT}])
    inventory = bench.cluster(500, 8, used=used)
    passing = bench.held(0, 1, name="passing")
    bench.filter_pass(inventory, wanted)
    rounds = 300 if again else 60
    gc.collect()
    began = time.process_time()
    for _ in range(rounds):
        if again:
            inventory.put_claim(passing)
            inventory.remove_claim(passing.metadata.uid)
        bench.filter_pass(inventory, wanted if again else bench.renamed(wanted))
    return (time.process_time() - began) / rounds


def _search(build: str, asked: str) -> float:
    from benchmarks import allocator as bench

    inventory = bench.partitions(32) if build == "partitions" else bench.cards(16)
    wanted = bench.claim(bench.request("a", 5), bench.request("b", 5))
    if asked == "cards":
        wanted = bench.claim(bench.request("a", 15, bench.sized("40")), bench.request("b", 9, bench.sized("50")))
    bench.solve(inventory, wanted)
    rounds = 20 if asked != "cards" else 2
    began = time.process_time()
    for _ in range(rounds):
        bench.solve(inventory, wanted)
    return (time.process_time() - began) / rounds / 5


def _cold() -> float:
    from benchmarks import allocator as bench

    wanted = bench.claim(bench.request("r", 1, bench.MODEL_AND_MEMORY))
    spent = 0.0
    for _ in range(3):
        inventory = bench.cluster(500, 8, used=(0, 2, 4, 6))
        began = time.process_time()
        bench.filter_pass(inventory, wanted)
        spent += time.process_time() - began
    return spent / 3


def _card(number: int) -> tuple[list[Plain], list[Plain]]:
    """The counters of a card, and its two halves and four quarters."""
    parts = {"half-1": (1, 2), "half-2": (3, 4), **{f"quarter-{each}": (each,) for each in (1, 2, 3, 4)}}
    devices = [
        {
            "name": name,
            "attributes": {"dra.example.com/slice": {"int": number}},
            "consumesCounters": [{"counterSet": "set", "counters": {f"c{each}": {"value": "1"} for each in takes}}],
        }
        for name, takes in parts.items()
    ]
    return [{"name": "set", "counters": {f"c{each}": {"value": "1"} for each in (1, 2, 3, 4)}}], devices


def _shared_pool(number: int, kind: str) -> list[Plain]:
    """The slices of one pool; of a card half is in use."""
    from benchmarks.scheduling import manifests as make

    if kind == "capacity":
        capacity = {"memory": {"value": "80Gi", "requestPolicy": {"default": "1Gi", "validRange": {"min": "1Gi"}}}}
        device = {"name": "shared", "allowMultipleAllocations": True, "capacity": capacity}
        return [make.wide_slice(number, devices=[device])]
    sets, devices = _card(number)
    taken = make.claim(number, "init")
    taken["metadata"]["uid"] = f"old-{number}"
    result = {"request": "req-0", "driver": make.DRIVER, "pool": f"resourceslice-{number}", "device": "half-1"}
    taken["status"] = {"allocation": {"devices": {"results": [result]}}}
    return [
        make.wide_slice(number, "sets-", sharedCounters=sets),
        make.wide_slice(number, "parts-", devices=devices),
        taken,
    ]


def _asked_of_pools(kind: str) -> Plain:
    from benchmarks.scheduling import manifests as make

    if kind == "capacity":
        asked = {"requests": {"memory": "40Gi"}}
        return {
            "requests": [
                make.exactly(f"req-{each}", allocationMode="ExactCount", count=1, capacity=asked) for each in (0, 1)
            ]
        }
    together = {"matchAttribute": "dra.example.com/slice", "requests": ["req-0"]}
    return {"requests": [make.exactly("req-0", allocationMode="ExactCount", count=2)], "constraints": [together]}


def _next_of_pools(kind: str, *, pools: int = 2000, nodes: int = 100, pods: int = 300) -> float:
    """The next pod of a template where all nodes reach all pools: a filter pass, and what it gets is taken."""
    from benchmarks.scheduling import manifests as make
    from drakit.allocator import Allocated, Allocator, Inventory
    from drakit.api import DeviceClass, Node, ResourceClaim, ResourceSlice, from_plain
    from drakit.base.gates import FeatureGates

    inventory, names = Inventory(FeatureGates.all_on()), [f"node-{number}" for number in range(nodes)]
    documents = [make.device_class(), *map(make.node, range(nodes))]
    kinds = {each.__name__: each for each in (DeviceClass, Node, ResourceClaim, ResourceSlice)}
    for document in (*documents, *(each for number in range(pools) for each in _shared_pool(number, kind))):
        inventory.put(from_plain(kinds[document["kind"]], document))

    def place(number: int) -> None:
        about = {"name": f"new-{number}", "namespace": "test", "uid": f"new-{number}"}
        wanted = from_plain(ResourceClaim, {"metadata": about, "spec": {"devices": _asked_of_pools(kind)}})
        allocator = Allocator(inventory, [wanted], snapshot=False)
        list(allocator.refused(names))
        found = allocator.allocate(names[number % nodes], new_uid=lambda: f"share-{number}")
        if not isinstance(found, Allocated):
            raise TypeError(f"pod {number}: {found}")
        inventory.begin_allocation(wanted, found.allocations[0])

    place(pods)
    gc.collect()
    began = time.process_time()
    for number in range(pods):
        place(number)
    return (time.process_time() - began) / pods


def _pods(nodes: int, devices: int, *, sqlite: bool = False) -> float:
    """Pods with a claim from a template through API server, claim controller and scheduler: CPU time per pod."""
    import uvloop

    from benchmarks.scheduling.clusters import cluster
    from benchmarks.scheduling.workloads import claim_templates

    async def run() -> float:
        async with cluster(sqlite=sqlite) as made:
            measured = await claim_templates(nodes, devices)(made)
            return measured.cpu / measured.pods

    return uvloop.run(run())


def _pods_of_pools(kind: str) -> float:
    """The same where 100 nodes reach 2,000 pools, the first pod included."""
    import uvloop

    from benchmarks.scheduling import workloads
    from benchmarks.scheduling.clusters import cluster

    begin = workloads.consumable_capacity if kind == "capacity" else workloads.partitionable

    async def run() -> float:
        async with cluster() as made:
            measured = await begin(100, 2000, 500)(made)
            return measured.cpu / measured.pods

    return uvloop.run(run())


def _apiserver(what: str, *, sqlite: bool = False) -> float:
    """Requests of 16 callers, in process."""
    import uvloop

    from benchmarks import apiserver as bench
    from drakit.api.exchange import Request
    from drakit.apiserver import Server, build_server
    from drakit.store import MemoryStore, SQLiteStore

    async def measured(server: Server) -> float:
        async def call(method: str, path: str, body: bytes) -> bytes:
            answer = await server.handle(Request(method=method, path=path, headers=bench.HEADERS, body=body))
            return answer.content.encode()

        calls: list[bench.Call] = [call] * bench.WRITERS
        count = 1500
        began = time.process_time()
        await bench.repeat(calls, count, lambda one, n: one("POST", bench.CLAIMS, bench.claim(f"c{n}")))
        created = (time.process_time() - began) / count
        if what == "create":
            return created
        count, began = (4000, time.process_time()) if what == "get" else (8, time.process_time())
        path = f"{bench.CLAIMS}/c7" if what == "get" else bench.CLAIMS
        await bench.repeat(calls, count, lambda one, _: one("GET", path, b""))
        return (time.process_time() - began) / count

    async def run() -> float:
        if not sqlite:
            async with MemoryStore() as memory:
                return await measured(await build_server(memory))
        with tempfile.TemporaryDirectory() as directory:
            async with await SQLiteStore.open(Path(directory) / "store.db") as store:
                return await measured(await build_server(store))

    return uvloop.run(run())


def _writes() -> float:
    """The seven writes of a pod with a claim, through a client in process, with informers."""
    import uvloop

    from benchmarks import bench_pod_writes as bench
    from drakit.store import MemoryStore

    async def run() -> float:
        async with MemoryStore() as store:
            return sum(cpu for cpu, _ in (await bench.measure(store)).values())

    return uvloop.run(run())


CASES: dict[str, Case] = {
    "allocator: 500 nodes half in use, first pass of a template": partial(passes, "half", again=False),
    "allocator: 500 nodes half in use, next pod": partial(passes, "half", again=True),
    "allocator: 4 of 8 with matchAttribute, 500 empty nodes, first": partial(passes, "empty", again=False),
    "allocator: 500 nodes all in use, next pod": partial(passes, "full", again=True),
    "allocator: 500 nodes, selectors never evaluated before": _cold,
    "allocator: 10 of 32 partitions where counters allow 10": partial(_search, "partitions", "any"),
    "allocator: 15 × 40 and 9 × 50 on 16 cards of 80": partial(_search, "cards", "cards"),
    "allocator: 2,000 pools that 100 nodes reach, capacity, next pod": partial(_next_of_pools, "capacity"),
    "allocator: 2,000 pools that 100 nodes reach, partitions, next pod": partial(_next_of_pools, "partitions"),
    "scheduler: pods of a template, 100 nodes × 10 devices, memory": partial(_pods, 100, 10),
    "scheduler: pods of a template, 100 nodes × 10 devices, SQLite": partial(_pods, 100, 10, sqlite=True),
    "scheduler: pods of a template, 500 nodes × 2 devices, memory": partial(_pods, 500, 2),
    "scheduler: 500 pods over 2,000 pools, capacity, memory": partial(_pods_of_pools, "capacity"),
    "scheduler: 500 pods over 2,000 pools, partitions, memory": partial(_pods_of_pools, "partitions"),
    "apiserver: create a claim, memory": partial(_apiserver, "create"),
    "apiserver: create a claim, SQLite": partial(_apiserver, "create", sqlite=True),
    "apiserver: get a claim": partial(_apiserver, "get"),
    "apiserver: the seven writes of a pod, memory": _writes,
    "apiserver: list 1,500 claims": partial(_apiserver, "list"),
}


if __name__ == "__main__":
    print(CASES[sys.argv[1]]())
    # Leave at once: what ends a process is not what is measured.
    asyncio.set_event_loop(None)
