"""Run all benchmarks, or those that are named: `python -m benchmarks [NAME…]`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

TOOLS = ("report", "steps")


def available() -> list[str]:
    files = Path(__file__).parent.glob("*.py")
    return sorted(file.stem for file in files if not file.stem.startswith("_") and file.stem not in TOOLS)


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in available()]
    if unknown:
        print(f"unknown benchmark {', '.join(unknown)}; known are {', '.join(available())}", file=sys.stderr)
        return 2
    for name in names or available():
        importlib.import_module(f"benchmarks.{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
