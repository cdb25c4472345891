"""Hold the CEL engine against recorded facts of upstream.

In:  files of vectors, one JSON object per line: an expression, a device, what upstream made of them.
Out: `agree N of M`, the ids that differ, the share of exact costs. `python -m tests.conformance.cel FILE...` exits 1
     when any result differs.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drakit.base.errors import SelectorInvalid
from drakit.selectors import SelectorOutcome, bind, compile_selector
from tests.conformance.vectors import read_vectors

DATA = Path(__file__).parent / "data" / "cel.jsonl.gz"

_CONSTRUCT = re.compile(r"\.?\b([A-Za-z_]+)\(|(&&|\|\||[=!<>]=|[-+*/%<>!?]|\bin\b)")


@dataclass
class Report:
    """What became of all cases."""

    total: int = 0
    costed: int = 0
    exact: int = 0
    differing: list[str] = field(default_factory=list)
    inexact: list[str] = field(default_factory=list)
    constructs: Counter[str] = field(default_factory=Counter)

    @property
    def share(self) -> float:
        return 100 * self.exact / self.costed if self.costed else 100.0

    def lines(self) -> Iterator[str]:
        yield f"agree {self.total - len(self.differing)} of {self.total}"
        yield from self.differing
        yield f"exact cost {self.exact} of {self.costed} ({self.share:.2f} %)"
        for construct, count in self.constructs.most_common(20):
            yield f"  {count:5d} with inexact cost use {construct}"


def run(cases: Iterable[dict[str, Any]]) -> Report:
    report = Report()
    for case in cases:
        report.total += 1
        difference = judge(case, report)
        if difference:
            report.differing.append(f"{case.get('id', report.total)}: {difference}")
    return report


def judge(case: dict[str, Any], report: Report) -> str:
    """How our answer to one case differs, or nothing; costs go to the report."""
    expect, expression = case["expect"], case["expression"]
    try:
        selector = compile_selector(expression, list_attributes=bool(case.get("listTypeAttributes")))
    except SelectorInvalid as error:
        return "" if "compileError" in expect else f"{expression}: does not compile: {error}"
    if "compileError" in expect:
        return f"{expression}: compiles, but should not: {expect['compileError']}"
    device = dict(case["device"])
    bound = bind(device.pop("driver"), device)
    metered = selector.metered(bound)
    difference = _result(expect, metered) or _result(expect, selector.evaluate(bound))
    report.costed += 1
    if (selector.max_cost, metered.cost) == (expect["maxCost"], expect["actualCost"]):
        report.exact += 1
    else:
        report.inexact.append(expression)
        report.constructs.update({first or second for first, second in _CONSTRUCT.findall(expression)})
    return f"{expression}: {difference}" if difference else ""


def _result(expect: dict[str, Any], outcome: SelectorOutcome) -> str:
    wanted = f"error {expect['runtimeError']}" if "runtimeError" in expect else str(expect["matches"])
    got = f"error {outcome.error}" if outcome.error else str(outcome.matches)
    agree = bool(outcome.error) if "runtimeError" in expect else wanted == got
    return "" if agree else f"got {got}, wanted {wanted}"


def main(arguments: Sequence[str]) -> int:
    report = run(read_vectors(arguments or [DATA]))
    print("\n".join(report.lines()))
    return 1 if report.differing or not report.total else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
