"""`python -m drakit.simulate --seeds 0..999 [--faults crash-server,late]`: bad days, one per seed.

In:  seeds, and which faults may be drawn.
Out: progress, runs per second, a table of which fault met which phase; for a seed that breaks a rule, the shortest run
     that still does, as a transcript. Exit code 1 when a rule was broken, 2 for arguments that make no sense.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence

from drakit.simulate.faults import FAULTS
from drakit.simulate.runs import RunResult, plan_of, run
from drakit.simulate.shrink import shrink
from drakit.simulate.transcripts import coverage, transcript

_EVERY = 10.0


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    began, told = time.monotonic(), time.monotonic()
    met: Counter[tuple[str, str]] = Counter()
    broken: list[int] = []
    for count, seed in enumerate(options.seeds, 1):
        result = run(plan_of(seed, options.faults))
        met.update(result.met)
        if options.transcript:
            _say(*transcript(result))
        if result.violations:
            broken.append(seed)
            if not options.transcript:
                _say(*transcript(_shortest(result, options.tries)))
        if time.monotonic() - told > _EVERY or count == len(options.seeds):
            told = time.monotonic()
            rate = count / max(told - began, 1e-9)
            _say(f"{count} of {len(options.seeds)} runs, {rate:.2f} a second, {len(broken)} broken")
    _say(*coverage(met, options.faults))
    if broken:
        _say(f"broken seeds: {' '.join(map(str, broken))}")
    return 1 if broken else 0


def _shortest(result: RunResult, tries: int) -> RunResult:
    return shrink(result, tries=tries) if tries else result


def _say(*lines: str) -> None:
    for each in lines:
        print(each, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m drakit.simulate", description="A cluster with faults, per seed.")
    parser.add_argument("--seeds", type=_seeds, default=range(100), help="one seed, or the first and the last: 0..99")
    parser.add_argument("--faults", type=_faults, default=FAULTS, help=f"some of {', '.join(FAULTS)}; or none")
    parser.add_argument("--tries", type=int, default=40, help="runs to shrink a failure with; 0 shows it as it is")
    parser.add_argument("--transcript", action="store_true", help="show what happens in each run")
    return parser


def _seeds(text: str) -> range:
    first, dots, last = text.partition("..")
    try:
        found = range(int(first), int(last if dots else first) + 1)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number or FIRST..LAST, got {text!r}") from None
    if not found:
        raise argparse.ArgumentTypeError(f"there is no seed in {text!r}")
    return found


def _faults(text: str) -> tuple[str, ...]:
    if text == "none":
        return ()
    names = tuple(text.split(","))
    for each in names:
        if each not in FAULTS:
            raise argparse.ArgumentTypeError(f"there is no fault {each!r}: known are {', '.join(FAULTS)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
