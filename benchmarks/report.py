"""One way to show and keep measurements: a table on the terminal, the same in `benchmarks/results/NAME.md`."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"


def best_of(work: Callable[[], object], *, rounds: int = 5, inner: int = 1) -> float:
    """Seconds for one call: the best of several rounds, so that a busy machine counts least."""
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(inner):
            work()
        best = min(best, (time.perf_counter() - start) / inner)
    return best


def origin() -> str:
    """When, from which commit, on what machine and beside how much else: the line above every table."""
    answer = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    commit = answer.stdout.strip() or "unknown"
    machine = f"Python {platform.python_version()}, {platform.machine()} with {os.cpu_count()} cores"
    return f"{datetime.now(UTC):%Y-%m-%d}, commit {commit}, {machine}, load {os.getloadavg()[1]:.1f}"


def publish(name: str, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print the table and write it to the results."""
    table = Table(title=title)
    for column in columns:
        table.add_column(column)
    for row in rows:
        table.add_row(*row)
    Console().print(table)
    RESULTS.mkdir(exist_ok=True)
    lines = [f"# {title}", "", origin(), "", _row(columns), _row(["---"] * len(columns)), *map(_row, rows), ""]
    (RESULTS / f"{name}.md").write_text("\n".join(lines))


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
