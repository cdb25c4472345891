"""Compare two checkouts: `python -m benchmarks compare BASE [PART…]`.

In:  a git revision, which is checked out to a temporary worktree, and the working tree; parts of names of cases.
Out: per case the CPU time of both and their ratio, with its spread.

Both run in turn, a process each, and which of them goes first changes from round to round. So whatever else the machine
does concerns both alike. A ratio is that of one round; the table has the median and the middle half of all rounds. A
difference smaller than that spread is none.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.progress import track

from benchmarks.cases import CASES
from benchmarks.report import publish

ROUNDS = int(os.environ.get("DRAKIT_ROUNDS", "9"))
ROOT = Path(__file__).parents[1]
COLUMNS = ("work", "before", "now", "now / before", "middle half", "rounds")


@contextmanager
def checkout(revision: str) -> Iterator[Path]:
    """A worktree of the revision, removed at the end."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "base"
        _git("worktree", "add", "--detach", str(path), revision)
        try:
            yield path
        finally:
            _git("worktree", "remove", "--force", str(path))


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.strip()


def measure(case: str, path: Path) -> float:
    """Seconds of CPU time that one piece of work takes in a checkout."""
    # The cases are always those of the working tree; everything that they import is the checkout's.
    environment = {**os.environ, "PYTHONPATH": f"{path / 'src'}:{path}", "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-P", str(ROOT / "benchmarks" / "cases.py"), case]
    done = subprocess.run(command, cwd=path, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{case} in {path}:\n{done.stderr}")
    return float(done.stdout)


def compare(case: str, base: Path, rounds: int) -> tuple[str, ...]:
    before, now = list[float](), list[float]()
    for number in range(rounds):
        order = ((base, before), (ROOT, now))
        for path, times in order if number % 2 else reversed(order):
            times.append(measure(case, path))
    ratios = [after / first for first, after in zip(before, now, strict=True)]
    low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return (
        case,
        _shown(statistics.median(before)),
        _shown(statistics.median(now)),
        f"{statistics.median(ratios):.3f}",
        f"{low:.3f} to {high:.3f}",
        str(rounds),
    )


def _shown(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} µs"


def main(arguments: Sequence[str]) -> int:
    if not arguments:
        print("usage: python -m benchmarks compare BASE [PART…]", file=sys.stderr)
        return 2
    revision, *parts = arguments
    chosen = [case for case in CASES if not parts or any(part in case for part in parts)]
    if not chosen:
        print(f"no case has {' or '.join(parts)} in its name; cases are:", *CASES, sep="\n  ", file=sys.stderr)
        return 2
    rows: list[tuple[str, ...]] = []
    with checkout(revision) as base:
        for case in track(chosen, description="cases", transient=True):
            rows.append(compare(case, base, ROUNDS))
            # Told at once: on a busy machine the whole takes long.
            print(" | ".join(rows[-1]), file=sys.stderr)
    publish("compare", f"CPU time against {revision}", COLUMNS, rows)
    return 0
