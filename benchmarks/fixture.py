"""The test fixture: how long a cluster takes to start and to end, a pod to run, an hour to pass."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack

from benchmarks.report import publish
from drakit.client import PODS
from drakit.simulate.cluster import ClusterPlan
from drakit.simulate.loops import SteppedLoop
from drakit.testing.cluster import running

ROUNDS = 20
PODS_EACH = 3
COLUMNS = ("what", "CPU time, best", "CPU time, median", "real time, best")
OBJECTS = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: NAME}
spec:
  devices:
    requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]
---
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  resourceClaims: [{name: gpu, resourceClaimName: NAME}]
  containers: [{name: main, image: train, resources: {claims: [{name: gpu}]}}]
"""


class Stopwatch:
    """Times of each step, CPU and real."""

    def __init__(self) -> None:
        self.taken: dict[str, list[tuple[float, float]]] = {}
        self._last = (0.0, 0.0)

    def begin(self) -> None:
        self._last = (time.process_time(), time.perf_counter())

    def lap(self, what: str) -> None:
        now = (time.process_time(), time.perf_counter())
        self.taken.setdefault(what, []).append((now[0] - self._last[0], now[1] - self._last[1]))
        self.begin()


async def one_test(watch: Stopwatch, plan: ClusterPlan) -> None:
    watch.begin()
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(running(plan))
        watch.lap("start of a cluster with a node")
        for number in range(PODS_EACH):
            await cluster.apply(OBJECTS.replace("NAME", f"train-{number}"))
            await cluster.wait_for(f"train-{number}")
            watch.lap("a pod with a claim, from apply to Running")
        await cluster.delete(PODS, "train-0")
        await cluster.wait_for("train-0", "Deleted")
        watch.lap("its end")
        await cluster.advance(3600)
        watch.lap("an hour with two pods")
    watch.lap("end of the cluster")


def main() -> None:
    watch = Stopwatch()
    for number in range(ROUNDS + 1):
        if number == 1:  # the first has imports, profiles and compiled selectors
            watch.taken.clear()
        with asyncio.Runner(loop_factory=SteppedLoop) as runner:
            runner.run(one_test(watch, ClusterPlan()))
    rows = [
        (what, *(f"{1000 * each:.1f} ms" for each in (cpu[0], cpu[len(cpu) // 2], min(real for _, real in taken))))
        for what, taken in watch.taken.items()
        for cpu in [sorted(each for each, _ in taken)]
    ]
    publish("fixture", "A cluster in a test (`dra_cluster`)", COLUMNS, rows)


if __name__ == "__main__":
    main()
