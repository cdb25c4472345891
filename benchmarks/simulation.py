"""The simulator: runs per second of CPU time, as its command plays them, and how fast its time goes."""

from __future__ import annotations

import resource

from benchmarks.report import publish
from drakit.simulate.runs import plan_of
from drakit.simulate.workers import played

SEEDS = range(200, 4200, 100)
"""Of one beginning: it is started once for all of them."""
COLUMNS = ("what", "per second of CPU time")


def main() -> None:
    with played(SEEDS, 1, plan_of) as results:
        runs = list(results)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    taken = used.ru_utime + used.ru_stime
    rows = [
        ("runs", f"{len(runs) / taken:.2f}"),
        ("virtual seconds", f"{sum(each.seconds for each in runs) / taken:,.0f}"),
        ("steps of tasks", f"{sum(each.steps for each in runs) / taken:,.0f}"),
    ]
    publish("simulation", f"The simulator, {len(runs)} seeds from {SEEDS[0]}", COLUMNS, rows)


if __name__ == "__main__":
    main()
