"""Ten minutes of pods that come and go: `python -m benchmarks soak [MINUTES]`.

In:  a cluster on SQLite with 100 nodes of 10 devices; pods of a template, 50 at a time, created, bound, deleted, again.
Out: a row per twentieth of the time: pods per second, CPU time per pod, p99 from creation to binding, memory. The exit
     code is 1 if one of them grows.

Events live for 20 s here instead of an hour, so that what the store keeps has its size early.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import uvloop

from benchmarks.report import publish
from benchmarks.scheduling import manifests as make
from benchmarks.scheduling.clusters import Cluster, cluster, percentile
from benchmarks.scheduling.workloads import TEST, begin, of_template

MINUTES = 10.0
WINDOWS = 20
TOGETHER = 50
EVENT_TTL = 20.0
COLUMNS = ("minute", "pods", "pods/s", "CPU per pod", "bound p99", "memory", "objects that Python tracks")
GROWTH = {"CPU per pod": 1.15, "bound p99": 1.5, "memory": 1.15}
"""How many times the first half's median the second half's may be. A busy machine moves p99 by itself."""


class Window(NamedTuple):
    minute: float
    pods: int
    seconds: float
    cpu: float
    late: float
    memory: float
    objects: int

    def row(self) -> tuple[str, ...]:
        return (
            f"{self.minute:.1f}",
            f"{self.pods:,}",
            f"{self.pods / self.seconds:.0f}",
            f"{self.cpu / self.pods * 1e3:.2f} ms",
            f"{self.late * 1e3:.0f} ms",
            f"{self.memory:.0f} MB",
            f"{self.objects:,}",
        )


def _resident() -> float:
    """Megabytes of this process, now: the most that it ever had would hide what was given back."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


async def _window(it: Cluster, first: int, begun: float, length: float) -> Window:
    start, cpu, pods, latencies = time.perf_counter(), time.process_time(), 0, list[float]()
    while time.perf_counter() - start < length:
        some = of_template(TEST, TOGETHER, first + pods)
        latencies += (await it.place(some)).latencies
        await it.remove(some)
        it.forget(some)
        pods += TOGETHER
    now = time.perf_counter()
    spent = time.process_time() - cpu
    return Window(
        (now - begun) / 60, pods, now - start, spent, percentile(latencies, 0.99), _resident(), len(gc.get_objects())
    )


async def run(minutes: float) -> list[Window]:
    windows: list[Window] = []
    async with cluster(sqlite=True, event_ttl=EVENT_TTL) as made:
        await begin(made, 100, make.device_class(), make.template(TEST, make.exactly("req-0")), devices=10)
        begun = time.perf_counter()
        for _ in range(WINDOWS):
            first = sum(each.pods for each in windows)
            windows.append(await _window(made, first, begun, minutes * 60 / WINDOWS))
            print(" | ".join(windows[-1].row()), file=sys.stderr)
    return windows


def growth(windows: Sequence[Window]) -> dict[str, float]:
    """The second half's median over the first half's; the first window, which warms up, does not count."""
    steady = windows[1:]
    half = len(steady) // 2
    values = {
        "CPU per pod": [each.cpu / each.pods for each in steady],
        "bound p99": [each.late for each in steady],
        "memory": [each.memory for each in steady],
    }
    return {name: statistics.median(some[half:]) / statistics.median(some[:half]) for name, some in values.items()}


def main(arguments: Sequence[str] = ()) -> int:
    minutes = float(arguments[0]) if arguments else MINUTES
    windows = uvloop.run(run(minutes))
    found = growth(windows)
    publish("soak", f"Pods that come and go for {minutes:g} minutes, SQLite", COLUMNS, [each.row() for each in windows])
    for name, ratio in found.items():
        print(f"{name}: {ratio:.2f} times from the first half to the second, {GROWTH[name]} at most")
    return int(any(ratio > GROWTH[name] for name, ratio in found.items()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
