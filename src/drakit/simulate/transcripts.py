"""What people read of runs: a transcript of one that failed, and a table of what was met by what.

In:  results.
Out: lines of text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from drakit.simulate.runs import RunResult

PHASES = ("idle", "pending", "starting", "running", "terminating", "ended")
_NOISE = ("/leases/", "/events/", "/rbac.", "/namespaces/", "/serviceaccounts/", "/configmaps/", "/flowcontrol")


def transcript(result: RunResult, *, most: int = 120) -> Iterator[str]:
    """What was done, what happened, what is wrong."""
    plan = result.plan
    yield f"seed {plan.seed}: {plan.nodes} nodes, weather: {', '.join(plan.weather) or 'fair'}"
    yield from (f"  {each}" for each in plan.steps)
    lines = [each for each in result.trace if not any(word in each for word in _NOISE)]
    if len(lines) > most:
        yield f"  … {len(lines) - most} earlier lines"
    yield from (f"  {each}" for each in lines[-most:])
    yield from (f"BROKEN: {each}" for each in result.violations)
    yield f"replay: python -m drakit.simulate --seeds {plan.seed} --transcript"


def coverage(met: Counter[tuple[str, str]], faults: Iterable[str]) -> Iterator[str]:
    """Which fault met pods in which phase, and how often."""
    yield f"{'fault':20}" + "".join(f"{each:>12}" for each in PHASES)
    for fault in faults:
        yield f"{fault:20}" + "".join(f"{met[fault, each]:>12}" for each in PHASES)
