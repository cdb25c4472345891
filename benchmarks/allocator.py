"""What a filter pass and hard cases take, against the anchors of upstream: `python -m benchmarks.allocator`.

A pass is what one pod costs: the claims are new objects, every node is answered. "cold" is the first pass of all: no
selector was ever evaluated on any of the devices, of which no two are alike. "first" is a spec never seen before with
selectors that were. "again" is the next pod of the same template after one device changed hands.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import count
from time import perf_counter
from typing import Any

from benchmarks.report import best_of, publish
from drakit.allocator import Allocated, Allocation, Allocator, Inventory
from drakit.api import DeviceClass, Node, ResourceClaim, ResourceSlice, from_plain, to_plain

Plain = dict[str, Any]
Row = tuple[str, str, str, str, str, str, str]
GPU = "gpu.example.com"
ROOT = "resource.kubernetes.io/pcieRoot"
MODEL_AND_MEMORY = (
    f'device.attributes["{GPU}"].model == "a100" && device.capacity["{GPU}"].memory.compareTo(quantity("40Gi")) >= 0'
)
_fresh = count()


def gpu(node: int, number: int) -> Plain:
    """A device as drivers publish it: most attributes alike, one that no other device has."""
    return {
        "name": f"gpu-{number}",
        "attributes": {
            "model": {"string": "a100"},
            "uuid": {"string": f"gpu-{node}-{number}"},
            "numa": {"int": number // 4},
            ROOT: {"string": f"pci0000:0{number // 4}"},
        },
        "capacity": {"memory": {"value": "80Gi"}},
    }


def slice_of(node: int, devices: Sequence[Plain], *, part: int = 0, parts: int = 1, **spec: Any) -> ResourceSlice:
    name = f"node-{node:05}"
    pool = {"name": name, "generation": 1, "resourceSliceCount": parts}
    body = {"driver": GPU, "nodeName": name, "pool": pool, "devices": list(devices), **spec}
    return from_plain(ResourceSlice, {"metadata": {"name": f"{name}-{part}"}, "spec": body})


def held(node: int, number: int, name: str = "held") -> ResourceClaim:
    result = {"request": "r", "driver": GPU, "pool": f"node-{node:05}", "device": f"gpu-{number}"}
    meta = {"name": f"{name}-{node}-{number}", "namespace": "default", "uid": f"{name}-{node}-{number}"}
    return from_plain(ResourceClaim, {"metadata": meta, "status": {"allocation": {"devices": {"results": [result]}}}})


def cluster(nodes: int, devices: int, used: Iterable[int] = ()) -> Inventory:
    inventory = Inventory()
    selector = {"cel": {"expression": f'device.driver == "{GPU}"'}}
    inventory.put_class(from_plain(DeviceClass, {"metadata": {"name": "gpu"}, "spec": {"selectors": [selector]}}))
    taken = tuple(used)
    for node in range(nodes):
        inventory.put_node(from_plain(Node, {"metadata": {"name": f"node-{node:05}"}}))
        inventory.put_slice(slice_of(node, [gpu(node, number) for number in range(devices)]))
        for number in taken:
            inventory.put_claim(held(node, number))
    return inventory


def request(name: str, number: int, *selectors: str) -> Plain:
    chosen = [{"cel": {"expression": each}} for each in selectors]
    asked = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": number, "selectors": chosen}
    return {"name": name, "exactly": asked}


def claim(*requests: Plain, constraints: Sequence[Plain] = ()) -> ResourceClaim:
    meta = {"name": "new", "namespace": "default", "uid": "new"}
    asked = {"requests": list(requests), "constraints": list(constraints)}
    return from_plain(ResourceClaim, {"metadata": meta, "spec": {"devices": asked}})


def renamed(wanted: ResourceClaim) -> ResourceClaim:
    """The same claim under request names that no plan knows yet."""
    plain = to_plain(wanted.spec.devices)
    fresh = {each["name"]: f"{each['name']}-{next(_fresh)}" for each in plain["requests"]}
    requests = [{**each, "name": fresh[each["name"]]} for each in plain["requests"]]
    constraints = [
        {**each, "requests": [fresh[name] for name in each.get("requests", ())]}
        for each in plain.get("constraints", ())
    ]
    return claim(*requests, constraints=constraints)


def filter_pass(inventory: Inventory, wanted: ResourceClaim) -> tuple[float, int]:
    nodes = sorted(inventory.nodes)
    start = perf_counter()
    found = sum(1 for _ in Allocator(inventory, [wanted]).suitable(nodes))
    return perf_counter() - start, found


def measure_pass(
    name: str, build: Callable[[], Inventory], wanted: ResourceClaim, upstream: float, target: float
) -> Row:
    cold = min(filter_pass(build(), wanted)[0] for _ in range(3))
    inventory = build()
    _, suitable = filter_pass(inventory, renamed(wanted))
    first = min(filter_pass(inventory, renamed(wanted))[0] for _ in range(30))
    filter_pass(inventory, wanted)
    passing = held(0, 1, name="passing")
    again = float("inf")
    for _ in range(20):
        inventory.put_claim(passing)
        inventory.remove_claim(passing.metadata.uid)
        again = min(again, filter_pass(inventory, wanted)[0])
    assert filter_pass(inventory, wanted)[1] == suitable
    ratio = upstream / (again * 1000)
    return (
        name,
        f"{upstream:g} ms",
        f"{target:g} ms",
        f"{cold * 1000:.1f} ms",
        f"{first * 1000:.2f} ms",
        f"{again * 1000:.2f} ms",
        f"{ratio:.0f} times",
    )


def passes() -> Iterable[Row]:
    half, empty = partial(cluster, 500, 8, used=(0, 2, 4, 6)), partial(cluster, 500, 8)
    yield measure_pass("1 GPU, 500 nodes of 8, half in use", half, claim(request("r", 1)), 22, 1.1)
    selected = claim(request("r", 1, MODEL_AND_MEMORY))
    yield measure_pass("the same with model and memory selector", half, selected, 44, 2.2)
    aligned = claim(request("r", 4), constraints=[{"matchAttribute": ROOT}])
    yield measure_pass("4 of 8 with matchAttribute, 500 empty nodes", empty, aligned, 94, 4.7)
    full = partial(cluster, 500, 8, used=range(8))
    yield measure_pass("1 GPU, 500 nodes, all in use", full, claim(request("r", 1)), 3.2, 1.07)


def solve(inventory: Inventory, wanted: ResourceClaim) -> tuple[float, Allocation]:
    """The best of a few searches that start from nothing known about the claim."""
    best, got = float("inf"), None
    for _ in range(5):
        asked = renamed(wanted)
        start = perf_counter()
        got = Allocator(inventory, [asked]).allocate("node-00000", new_uid=str)
        best = min(best, perf_counter() - start)
    assert got is not None
    return best, got


def measure_search(name: str, inventory: Inventory, wanted: ResourceClaim, upstream: str, target: str) -> Row:
    solve(inventory, wanted)
    seconds, got = solve(inventory, wanted)
    outcome = "allocated" if isinstance(got, Allocated) else "none"
    return name, upstream, target, "", f"{seconds * 1000:.2f} ms", outcome, f"{got.steps} steps"


def mixed(number: int) -> Inventory:
    """Two models of device by turns."""
    inventory = cluster(0, 0)
    models = [{**gpu(0, each), "attributes": {"model": {"string": "ab"[each % 2]}}} for each in range(number)]
    inventory.put_slice(slice_of(0, models))
    return inventory


def unalignable() -> ResourceClaim:
    """Some devices, then both models under one constraint that they agree."""
    kinds = [request(name, 4, f'device.attributes["{GPU}"].model == "{name}"') for name in "ab"]
    return claim(request("any", 8), *kinds, constraints=[{"matchAttribute": f"{GPU}/model", "requests": ["a", "b"]}])


def odd(number: int) -> Inventory:
    """Devices of which the first has no attributes, and is in use."""
    inventory = cluster(0, 0)
    others = [{**gpu(0, each), "attributes": {"odd": {"string": "y"}}} for each in range(1, number)]
    inventory.put_slice(slice_of(0, [{"name": "gpu-0"}, *others]))
    inventory.put_claim(held(0, 0))
    return inventory


def partitions(number: int) -> Inventory:
    """Devices alike that all draw on one set of counters, enough for ten of them."""
    inventory = cluster(0, 0)
    use = [{"counterSet": "set", "counters": {"memory": {"value": "8Gi"}}}]
    devices = [{**gpu(0, each), "consumesCounters": use} for each in range(number)]
    counters = [{"name": "set", "counters": {"memory": {"value": "80Gi"}}}]
    inventory.put_slice(slice_of(0, devices, parts=2))
    inventory.put_slice(slice_of(0, [], part=1, parts=2, sharedCounters=counters))
    return inventory


def cards(number: int) -> Inventory:
    """Cards of 80 alike, each to be had as one part of 50 or as two of 40."""
    inventory = cluster(0, 0)
    devices, counters = [], []
    for card in range(number):
        counters.append({"name": f"card-{card}", "counters": {"memory": {"value": "80"}}})
        for part, size in enumerate(("50", "40", "40")):
            use = [{"counterSet": f"card-{card}", "counters": {"memory": {"value": size}}}]
            named = {"name": f"card-{card}-{part}", "attributes": {"size": {"string": size}}}
            devices.append({**named, "consumesCounters": use})
    inventory.put_slice(slice_of(0, devices, parts=3))
    for part in (1, 2):
        half = counters[part - 1 :: 2]
        inventory.put_slice(slice_of(0, [], part=part, parts=3, sharedCounters=half))
    return inventory


def sized(size: str) -> str:
    return f'device.attributes["{GPU}"].size == "{size}"'


def hard_cases() -> Iterable[Row]:
    nothing = "device.driver == 'nobody'"
    wanted = claim(request("a", 6), request("b", 1, nothing))
    yield measure_search("6 of 16, then a request that nothing matches", cluster(1, 16), wanted, "101 ms", "1 ms")
    wanted = claim(request("a", 8), request("b", 1, nothing))
    yield measure_search("8 of 32, then a request that nothing matches", cluster(1, 32), wanted, "gives up", "5 ms")
    wanted = claim(request("a", 8), request("b", 25))
    yield measure_search("8 of 32, then one more than is left", cluster(1, 32), wanted, "–", "5 ms")
    wanted = claim(request("a", 16), constraints=[{"matchAttribute": f"{GPU}/numa"}])
    yield measure_search("16 of 32 on one NUMA node of 4", cluster(1, 32), wanted, "–", "5 ms")
    yield measure_search("8 of 32, then 8 that two models cannot share", mixed(32), unalignable(), "–", "5 ms")
    wanted = claim(request("a", 8), request("b", 1, f'device.attributes["{GPU}"].odd == "x"'))
    yield measure_search("8 of 32, then a selector that fails on one in use", odd(32), wanted, "–", "5 ms")
    wanted = claim(request("a", 6), request("b", 5))
    yield measure_search("11 of 32 partitions where counters allow 10", partitions(32), wanted, "–", "5 ms")
    wanted = claim(request("a", 5), request("b", 5))
    yield measure_search("10 of 32 partitions where counters allow 10", partitions(32), wanted, "–", "5 ms")
    wanted = claim(request("a", 15, sized("40")), request("b", 9, sized("50")))
    yield measure_search("15 × 40 and 9 × 50 on 16 cards of 80: one too many", cards(16), wanted, "–", "1 s")


def update_one(inventory: Inventory) -> float:
    """Publish one slice anew after a fork, so that nothing is cheap because it is not shared; the best of five."""
    best = float("inf")
    for size in (7, 6, 7, 6, 7):
        changed = slice_of(7, [gpu(7, number) for number in range(size)])
        kept = inventory.fork()
        start = perf_counter()
        inventory.put_slice(changed)
        inventory.views("node-00007")
        best = min(best, perf_counter() - start)
        del kept
    return best


def memory() -> Iterable[Row]:
    """Everything that an inventory of 5,000 nodes holds, slices included."""
    gc.collect()
    tracemalloc.start()
    inventory = cluster(5000, 8)
    filter_pass(inventory, claim(request("r", 1)))
    gc.collect()
    size = tracemalloc.get_traced_memory()[0] / 2**20
    tracemalloc.stop()
    yield "5,000 nodes × 8 devices, after a pass", "–", "300 MB", "", f"{size:.0f} MB", "", ""
    yield "update of one slice among them", "–", "–", "", f"{update_one(inventory) * 1000:.2f} ms", "", ""
    yield "fork for what-if", "–", "–", "", f"{best_of(inventory.fork) * 1e6:.0f} µs", "", ""
    seconds = min(filter_pass(inventory, claim(request("r", 1)))[0] for _ in range(5))
    yield "pass over all 5,000 nodes, again", "–", "–", "", f"{seconds * 1000:.2f} ms", "", ""


def main() -> None:
    publish(
        "allocator",
        "Allocator",
        ("work", "upstream", "target", "cold", "first", "again / answer", "upstream / again, or steps"),
        [*passes(), *hard_cases(), *memory()],
    )


if __name__ == "__main__":
    main()
