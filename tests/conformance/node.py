"""Node flows, recorded from a kubelet, played on the node agent.

    python -m tests.conformance.node FILE…

prints `agree N of M`, then the ids of the flows that differ and where; exits 1 if any does.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from pathlib import Path
from typing import Any

from tests.conformance.nodeflows.play import load, play

DATA = Path(__file__).parent / "data" / "node-flows.jsonl.gz"


def differences(flow: dict[str, Any]) -> list[str]:
    try:
        return play(flow)
    except Exception:
        return [traceback.format_exc()]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tests.conformance.node")
    parser.add_argument("files", nargs="*", type=Path, default=[DATA])
    parser.add_argument("--id", action="append", default=[], help="play only this flow")
    parser.add_argument("-q", "--quiet", action="store_true", help="only the ids")
    chosen = parser.parse_args(arguments)
    flows = [flow for path in chosen.files for flow in load(path)]
    flows = [flow for flow in flows if not chosen.id or flow["id"] in chosen.id or flow["recording"] in chosen.id]
    found = {flow["id"]: problems for flow in flows if (problems := differences(flow))}
    print(f"agree {len(flows) - len(found)} of {len(flows)}")
    for name, problems in found.items():
        print(name)
        for problem in problems if not chosen.quiet else ():
            print(f"  {problem}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
