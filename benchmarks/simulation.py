"""The simulator: runs per second of CPU time, and how much faster than the clock its time goes."""

from __future__ import annotations

import time

from benchmarks.report import publish
from drakit.simulate.runs import plan_of, run

SEEDS = range(200, 210)
COLUMNS = ("what", "per second of CPU time")


def main() -> None:
    run(plan_of(SEEDS[0]).brief())  # imports, profiles and compiled selectors
    began = time.process_time()
    results = [run(plan_of(seed)) for seed in SEEDS]
    taken = time.process_time() - began
    rows = [
        ("runs", f"{len(results) / taken:.2f}"),
        ("virtual seconds", f"{sum(each.seconds for each in results) / taken:,.0f}"),
        ("steps of tasks", f"{sum(each.steps for each in results) / taken:,.0f}"),
    ]
    publish("simulation", f"The simulator, seeds {SEEDS[0]} to {SEEDS[-1]}", COLUMNS, rows)


if __name__ == "__main__":
    main()
