"""Many runs on several processors: a worker starts a cluster once and plays each of its seeds in a fork of itself.

In:  seeds, how many workers, what each seed's plan is.
Out: results as they come. A fork ends without cleaning up, so no run pays for closing what the last one left, and
     memory is that of one run per worker, however many there are.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path

from msgspec.structs import replace

from drakit.simulate.disks.scratch import scratch_directory
from drakit.simulate.processes import undisturbed
from drakit.simulate.runs import BASES, Beginning, RunPlan, RunResult, nodes_of, quietly, run

PlanOf = Callable[[int], RunPlan]


@contextmanager
def played(seeds: Iterable[int], jobs: int, plan_of: PlanOf) -> Iterator[Iterator[RunResult]]:
    """Results of all seeds, in any order. With the block, the workers end."""
    shares = _shares(seeds, jobs)
    pids: list[int] = []
    ends: list[Connection] = []
    try:
        with _interrupts_held():
            for share in shares:
                mine, theirs = Pipe(duplex=False)
                ends.append(mine)
                pids.append(_fork(partial(_work, share, theirs, plan_of, ends, os.getpid())))
                theirs.close()
        yield _results(ends)
    finally:
        for end in ends:
            end.close()
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
            os.waitpid(pid, 0)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Ctrl-C comes after the block: Python loses it while it forks, and a worker that nobody knows would go on."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _results(ends: Sequence[Connection]) -> Iterator[RunResult]:
    left = list(ends)
    while left:
        ready = wait(left)
        for end in [each for each in left if each in ready]:
            try:
                yield end.recv()
            except EOFError:
                left.remove(end)


def _shares(seeds: Iterable[int], jobs: int) -> list[list[list[int]]]:
    """Seeds by their beginning, and those in about equal shares."""
    together: dict[int, list[int]] = defaultdict(list)
    for seed in seeds:
        together[seed % BASES].append(seed)
    groups = list(together.values())
    return [share for share in (groups[number::jobs] for number in range(jobs)) if share]


def _fork(work: Callable[[], None]) -> int:
    """The process id of a child that does the work and nothing else."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        # Whoever started all this decides when it ends; Ctrl-C reaches every process of the terminal.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        work()
        code = 0
    except BrokenPipeError:
        code = 0  # nobody wants to know any more
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _work(
    share: Sequence[Sequence[int]], results: Connection, plan_of: PlanOf, inherited: Sequence[Connection], starter: int
) -> None:
    for end in inherited:  # only the starter reads: without it nobody does
        end.close()
    # Modules and selectors that the first pods need are then there for every fork.
    run(plan_of(share[0][0]).brief())
    for seeds in share:
        with quietly(), undisturbed(), scratch_directory() as directory, scratch_directory() as aside:
            beginning = Beginning(seeds[0], nodes_of(seeds[0]), Path(directory))
            shutil.copytree(directory, aside, dirs_exist_ok=True)
            for seed in seeds:
                if os.getppid() != starter:  # it was killed, and nobody waits for the rest
                    return
                _play_in_fork(beginning, plan_of(seed), results)
                # A fork has memory of its own, but not files: checkpoints that it wrote are not for the next one.
                shutil.rmtree(directory)
                shutil.copytree(aside, directory)
            beginning.close()


def _play_in_fork(beginning: Beginning, plan: RunPlan, results: Connection) -> None:
    pid = _fork(lambda: results.send(_result(beginning, plan)))

    def end(*_: object) -> None:
        with suppress(ProcessLookupError, ChildProcessError):  # it may have ended just now
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os._exit(1)

    signal.signal(signal.SIGTERM, end)
    try:
        _, status = os.waitpid(pid, 0)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if status:
        results.send(_failed(plan, f"the process of the run ended with status {status}"))


def _result(beginning: Beginning, plan: RunPlan) -> RunResult:
    try:
        result = beginning.play(plan)
    except Exception as error:
        return _failed(plan, f"the simulator failed with {type(error).__name__}: {error}")
    # Nobody reads the trace of a run that broke no rule.
    return result if result.violations else replace(result, trace=())


def _failed(plan: RunPlan, why: str) -> RunResult:
    return RunResult(plan, (why,), "", (), {}, 0.0, 0)
