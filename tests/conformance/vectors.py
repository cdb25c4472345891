"""Read recorded cases, one JSON object per line (gzip or plain), and report how many agree."""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

Case = dict[str, Any]


def read_vectors(files: Iterable[str | Path]) -> Iterator[Case]:
    """Every case of every file; a file that cannot be read ends the program with a message and exit code 2."""
    for name in files:
        try:
            raw = Path(name).read_bytes()
            text = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
            yield from (json.loads(line) for line in text.splitlines() if line.strip())
        except (OSError, EOFError, ValueError, zlib.error) as error:
            print(f"{name}: {error}", file=sys.stderr)
            raise SystemExit(2) from error


def report(cases: Iterable[Case], agrees: Callable[[Case], bool]) -> int:
    """Print `agree N of M` and the ids that differ; 1 if any does, or if there was no case at all."""
    total, differing = 0, []
    for case in cases:
        total += 1
        if not agrees(case):
            differing.append(case["id"])
    print(f"agree {total - len(differing)} of {total}")
    for name in differing:
        print(name)
    return 1 if differing or not total else 0
