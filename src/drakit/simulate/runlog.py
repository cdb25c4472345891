"""A file of runs that were made: a long series can be left and gone on with.

In:  results.
Out: a line of JSON per run; the seeds that were clean, and what their faults met.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Self

from drakit.simulate.runs import RunResult


class RunLog:
    """Lines are only added. Of a seed that was run again, the last line counts."""

    def __init__(self, path: Path) -> None:
        self.clean: set[int] = set()
        self.met: Counter[tuple[str, str]] = Counter()
        self._read(path)
        self._file = path.open("a")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, result: RunResult) -> None:
        met = [[fault, phase, count] for (fault, phase), count in sorted(result.met.items())]
        line = {"seed": result.plan.seed, "violations": result.violations, "digest": result.digest, "met": met}
        self._file.write(json.dumps(line, separators=(",", ":")) + "\n")
        self._file.flush()

    def _read(self, path: Path) -> None:
        if not path.exists():
            return
        last = {}
        for line in path.read_text().splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # the last line of a run that was ended while it wrote
            last[entry["seed"]] = entry
        for seed, entry in last.items():
            if not entry["violations"]:
                self.clean.add(seed)
                self.met.update({(fault, phase): count for fault, phase, count in entry["met"]})
