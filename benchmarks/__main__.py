"""Measure.

python -m benchmarks                        what was measured with Kubernetes too, in one table (`make bench`)
python -m benchmarks NAME…                  these benchmarks; `all` is every one
python -m benchmarks compare BASE [PART…]   the working tree and another revision in turn, in CPU time
python -m benchmarks scaling [PART…] [SIZE…] what a pod costs as clusters grow
python -m benchmarks soak [MINUTES]         pods that come and go for ten minutes: exit code 1 if anything grows
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

TOOLS = ("report", "steps", "compare", "cases", "soak")
WITH_ARGUMENTS = ("anchors", "compare", "footprint", "scaling", "soak")


def available() -> list[str]:
    files = Path(__file__).parent.glob("*.py")
    return sorted(file.stem for file in files if not file.stem.startswith("_") and file.stem not in TOOLS)


def main(names: list[str]) -> int:
    if names[:1] in (["-h"], ["--help"]):
        print(f"{__doc__}\nbenchmarks: {', '.join(available())}")
        return 0
    names = names or ["anchors"]
    if names[0] in WITH_ARGUMENTS:
        return importlib.import_module(f"benchmarks.{names[0]}").main(names[1:]) or 0
    names = available() if names == ["all"] else names
    unknown = [name for name in names if name not in available()]
    if unknown:
        print(f"unknown benchmark {', '.join(unknown)}; known are {', '.join(available())}", file=sys.stderr)
        return 2
    for name in names:
        importlib.import_module(f"benchmarks.{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
