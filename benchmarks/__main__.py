"""Run all benchmarks, or those that are named: `python -m benchmarks [NAME…]`.

`python -m benchmarks compare BASE [PART…]` compares the working tree with another revision in CPU time.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

TOOLS = ("report", "steps", "compare", "cases")


def available() -> list[str]:
    files = Path(__file__).parent.glob("*.py")
    return sorted(file.stem for file in files if not file.stem.startswith("_") and file.stem not in TOOLS)


def main(names: list[str]) -> int:
    if names[:1] == ["compare"]:
        from benchmarks.compare import main as compare

        return compare(names[1:])
    unknown = [name for name in names if name not in available()]
    if unknown:
        print(f"unknown benchmark {', '.join(unknown)}; known are {', '.join(available())}", file=sys.stderr)
        return 2
    for name in names or available():
        importlib.import_module(f"benchmarks.{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
