"""What a pod costs as clusters grow: `python -m benchmarks scaling [PART…] [SIZE…]`.

In:  nodes from 100 to 5,000; pods that run already from 1,000 to 50,000; pods in flight from 1 to 10,000.
Out: CPU time per pod from its creation until it is bound, and the slope of its logarithm over that of the size: 0 is
     a cost that does not grow, 1 one that grows with the size. The bar is 0.2.

Everything runs in one process, store in memory. The largest rows take minutes, so the whole can run in pieces: with a
part of a name (`flight`) or sizes (`100 500`), the other rows of the table stay as they are.
"""

from __future__ import annotations

import asyncio
import math
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.report import RESULTS, publish
from benchmarks.scheduling import manifests as make
from benchmarks.scheduling.clusters import Cluster, cluster
from benchmarks.scheduling.workloads import INIT, TEST, begin, of_template
from drakit.api import ObjectMeta
from drakit.client import CLAIMS

BAR = 0.2
MEASURED = 500
_LOOK = 0.5
SLOTS = 50
"""Pods that run already on one node: a node takes 110."""
COLUMNS = ("what grows", "size", "CPU per pod", "slope")

Measure = Callable[[Cluster, int], Awaitable[float]]
Row = tuple[str, str, str, str]


async def _nodes(it: Cluster, size: int) -> float:
    wanted = make.template(TEST, make.exactly("req-0"))
    await begin(it, size, make.device_class(), wanted, devices=10)
    return await _cost(it, MEASURED, MEASURED)


async def _pods(it: Cluster, size: int) -> float:
    """Pods that are bound and have their claims, written as the scheduler would have left them."""
    wanted = make.template(TEST, make.exactly("req-0"))
    nodes = size // SLOTS + 20
    await begin(it, nodes, make.device_class(), wanted, devices=SLOTS + MEASURED // nodes + 5)
    await it.create(_protected(number) for number in range(size))
    for number in range(size):
        # The claim first: a pod whose claim is reserved for it leaves the claim controller nothing to do.
        pod = await it.client.create(_bound(number))
        claim = await it.client.get(CLAIMS, f"test-claim-{number}", namespace=INIT)
        await it.client.patch_status(claim, _status(number, pod.view.metadata))
    await _settled()
    return await _cost(it, MEASURED, MEASURED)


async def _settled() -> None:
    """Wait until nobody works any more on what was written before: it is not what is measured."""
    while True:
        begun = time.process_time()
        await asyncio.sleep(_LOOK)
        if time.process_time() - begun < _LOOK / 10:
            return


def _protected(number: int) -> dict[str, Any]:
    claim = make.claim(number, INIT)
    claim["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
    return claim


def _bound(number: int) -> dict[str, Any]:
    pod = make.pod_of_claim(f"old-{number}", INIT, f"test-claim-{number}")
    pod["spec"]["nodeName"] = f"node-{number // SLOTS}"
    return pod


def _status(number: int, user: ObjectMeta) -> dict[str, Any]:
    node = f"node-{number // SLOTS}"
    result = {"request": "req-0", "driver": make.DRIVER, "pool": node, "device": f"instance-{number % SLOTS}"}
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {
        "allocation": {
            "devices": {"results": [result]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
        },
        "reservedFor": [{"resource": "pods", "name": user.name, "uid": user.uid}],
    }


async def _in_flight(it: Cluster, size: int) -> float:
    """As many pods at a time, and again until enough of them were measured."""
    count = max(size, MEASURED)
    wanted = make.template(TEST, make.exactly("req-0"))
    await begin(it, 200, make.device_class(), wanted, devices=count // 200 + 2)
    return await _cost(it, count, size)


async def _cost(it: Cluster, count: int, together: int) -> float:
    begun = time.process_time()
    for start in range(0, count, together):
        await it.place(of_template(TEST, min(together, count - start), start))
    return (time.process_time() - begun) / count


SERIES: dict[str, tuple[Measure, Sequence[int]]] = {
    "nodes": (_nodes, (100, 500, 2_000, 5_000)),
    "pods that run already": (_pods, (1_000, 5_000, 20_000, 50_000)),
    "pods in flight": (_in_flight, (1, 10, 100, 1_000, 10_000)),
}


def slope(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Least squares of log(cost) over log(size)."""
    xs, ys = [math.log(each) for each in sizes], [math.log(each) for each in costs]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((each - x) ** 2 for each in xs)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / spread if spread else 0.0


async def _measured(measure: Measure, size: int) -> float:
    async with cluster() as made:
        return await measure(made, size)


def measure(name: str, sizes: Sequence[int]) -> dict[int, float]:
    """CPU seconds per pod by size."""
    costs: dict[int, float] = {}
    for size in sizes:
        costs[size] = uvloop.run(_measured(SERIES[name][0], size))
        print(f"{name} {size:,}: {costs[size] * 1e3:.2f} ms", file=sys.stderr)
    return costs


def rows_of(name: str, costs: Mapping[int, float]) -> list[Row]:
    """The rows of a series, the slope over all its sizes in the last one."""
    sizes = sorted(costs)
    found = slope(sizes, [costs[size] for size in sizes])
    rows = [(name, f"{size:,}", f"{costs[size] * 1e3:.2f} ms", "") for size in sizes]
    told = f"{found:.2f}, {'below' if found < BAR else 'NOT below'} {BAR}" if len(sizes) > 1 else ""
    return [*rows[:-1], (*rows[-1][:-1], told)]


def known(path: Path) -> dict[str, dict[int, float]]:
    """What a table has already: pieces that ran before."""
    found: dict[str, dict[int, float]] = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] in SERIES:
            size, cost = int(cells[1].replace(",", "")), float(cells[2].removesuffix(" ms"))
            found.setdefault(cells[0], {})[size] = cost / 1e3
    return found


def main(arguments: Sequence[str] = ()) -> None:
    asked = {int(each) for each in arguments if each.isdecimal()}
    parts = [each for each in arguments if not each.isdecimal()]
    costs = known(RESULTS / "scaling.md") if arguments else {}
    for name, (_, sizes) in SERIES.items():
        if not parts or any(part in name for part in parts):
            costs.setdefault(name, {}).update(measure(name, [each for each in sizes if not asked or each in asked]))
    rows = [row for name in SERIES if costs.get(name) for row in rows_of(name, costs[name])]
    publish("scaling", "What a pod costs as clusters grow", COLUMNS, rows)


if __name__ == "__main__":
    main(sys.argv[1:])
