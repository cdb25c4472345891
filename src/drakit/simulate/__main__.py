"""`python -m drakit.simulate --seeds 0..999 [--faults crash-server,late]`: bad days, one per seed.

In:  seeds, which faults may be drawn, how many runs at a time, a log of runs that need not be made again.
Out: progress, runs per second, a table of which fault met which phase; for a seed that breaks a rule, the shortest run
     that still does, as a transcript. Exit code 1 when a rule was broken, 2 for arguments that make no sense, 130 when
     it was interrupted and no rule had been broken by then.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from drakit.simulate.faults import FAULTS
from drakit.simulate.runlog import RunLog
from drakit.simulate.runs import RunResult, plan_of, run
from drakit.simulate.shrink import shrink
from drakit.simulate.transcripts import coverage, transcript
from drakit.simulate.workers import played

_EVERY = 10.0
_INTERRUPTED = 130
_MOST_JOBS = 64


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    tally = SeriesTally(options)
    interrupted = False
    with ExitStack() as stack:
        log = stack.enter_context(RunLog(options.log)) if options.log is not None else None
        tally.known(log)
        try:
            results = stack.enter_context(played(tally.left, options.jobs, lambda seed: plan_of(seed, options.faults)))
            for result in results:
                if log is not None:
                    log.add(result)
                tally.take(result)
        except KeyboardInterrupt:
            interrupted = True
    tally.close()
    return 1 if tally.broken else _INTERRUPTED if interrupted else 0


class SeriesTally:
    """How it goes so far, and what is said of it."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._began = self._told = time.monotonic()
        self._met: Counter[tuple[str, str]] = Counter()
        self._done = 0
        self._new = 0
        self.left: Sequence[int] = options.seeds
        self.broken: list[int] = []

    def known(self, log: RunLog | None) -> None:
        """Seeds that the log has as clean are not run again."""
        if log is not None:
            self.left = [seed for seed in self._options.seeds if seed not in log.clean]
            self._done = len(self._options.seeds) - len(self.left)
            self._met.update(log.met)

    def take(self, result: RunResult) -> None:
        self._done += 1
        self._new += 1
        self._met.update(result.met)
        if result.violations:
            self.broken.append(result.plan.seed)
        if self._options.transcript:
            _say(*transcript(result if result.trace else run(result.plan)))
        elif result.violations:
            _say(*transcript(_shortest(result, self._options.tries)))
        if time.monotonic() - self._told > _EVERY:
            self._tell()

    def close(self) -> None:
        self._tell()
        _say(*coverage(self._met, self._options.faults))
        if self.broken:
            _say(f"broken seeds: {' '.join(map(str, sorted(self.broken)))}")

    def _tell(self) -> None:
        self._told = time.monotonic()
        rate = self._new / max(self._told - self._began, 1e-9)
        _say(f"{self._done} of {len(self._options.seeds)} runs, {rate:.2f} a second, {len(self.broken)} broken")


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
    parser.add_argument("--jobs", type=_jobs, default=1, help="runs at the same time, each in a process of its own")
    parser.add_argument(
        "--log", type=Path, help="add each result to this file, and leave out seeds that it has as clean"
    )
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


def _jobs(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_JOBS:
        raise argparse.ArgumentTypeError(f"expected 1 to {_MOST_JOBS}, got {text!r}")
    return int(text)


def _faults(text: str) -> tuple[str, ...]:
    if text == "none":
        return ()
    names = tuple(text.split(","))
    for each in names:
        if each not in FAULTS:
            raise argparse.ArgumentTypeError(f"there is no fault {each!r}: known are {', '.join(FAULTS)}")
    return names


def run_command() -> int:
    """`main`; a reader who has gone (`| head`) ends it without a message."""
    try:
        return main()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0


if __name__ == "__main__":
    sys.exit(run_command())
