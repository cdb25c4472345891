"""Pods per second through API server, controllers and scheduler in one process.

Run as `python -m benchmarks scheduler`; `DRAKIT_WORKLOAD=Steady` runs the workloads whose name contains that.
"""

from __future__ import annotations

import os
import sys

import uvloop
from rich.progress import track

from benchmarks.report import publish
from benchmarks.scheduling.clusters import Measured, Stuck, cluster, percentile
from benchmarks.scheduling.workloads import WORKLOADS, Workload

EVERYTHING = "SQLite, all controllers"
COLUMNS = (
    "workload",
    "size",
    "where",
    "pods/s",
    "target",
    "Kubernetes",
    "CPU per pod",
    "bound p50",
    "p99",
    "attempt p50",
    "p99",
    "longest",
)
Row = tuple[str, ...]


async def measure(workload: Workload, *, sqlite: bool, everything: bool) -> Measured:
    async with cluster(sqlite=sqlite, everything=everything) as made:
        return await workload.run(made)


def row(workload: Workload, where: str, measured: Measured) -> Row:
    target = f"{workload.target:.0f}" if workload.target else ""
    times = (
        f"{percentile(each, share) * 1e3:{form}} ms" if each else ""
        for each, form in ((measured.latencies, ".0f"), (measured.attempts, ".2f"))
        for share in (0.5, 0.99)
    )
    longest = f"{max(measured.attempts) * 1e3:.0f} ms" if measured.attempts else ""
    cpu = f"{measured.cpu / measured.pods * 1e3:.2f} ms"
    return workload.name, workload.size, where, f"{measured.rate:.0f}", target, workload.upstream, cpu, *times, longest


def main() -> None:
    wanted = os.environ.get("DRAKIT_WORKLOAD", "")
    chosen = [(each, "memory") for each in WORKLOADS] + [(WORKLOADS[0], where) for where in ("SQLite", EVERYTHING)]
    chosen = [(each, where) for each, where in chosen if wanted in f"{each.name}, {each.size}, {where}"]
    rows: list[Row] = []
    for workload, where in track(chosen, description="workloads", transient=True):
        try:
            measured = uvloop.run(measure(workload, sqlite=where != "memory", everything=where == EVERYTHING))
        except Stuck as error:
            print(f"{workload.name}: {error}", file=sys.stderr)
            rows.append((workload.name, workload.size, where, "stuck", *[""] * (len(COLUMNS) - 4)))
        else:
            rows.append(row(workload, where, measured))
    publish("scheduler", "Pods per second through the whole system, in one process", COLUMNS, rows)


if __name__ == "__main__":
    main()
