"""`python -m tests.chaos [--minutes 5] [--seed N] [--logs DIR]`: replicas of everything fail in turn, under load.

Each is killed (-9), paused (SIGSTOP) and cut off from all others. Prints a table of what was done to whom and what was
answered meanwhile, and exits with 1 if anything was lost, doubled or given twice.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from tests.chaos.load import Answers, Load
from tests.chaos.replicas import Replica, ReplicatedCluster, replicated

_FAULTS = KILL, PAUSE, CUT = "kill -9", "pause", "cut off"
_LASTS = {False: (1.0, 4.0), True: (4.0, 12.0)}
"""Seconds that a fault lasts. Of those that elect a leader some must be away for longer than the lease."""
Rows = dict[tuple[str, str], Answers]
"""What was answered while a replica suffered something, and until it was well again."""


def turns(cluster: ReplicatedCluster, random: Random) -> Iterator[tuple[Replica, str]]:
    """Every replica with every fault, in another order each time round; the faults take turns."""
    count = len(cluster.replicas)
    while True:
        orders = [[(each, how) for each in random.sample(cluster.replicas, count)] for how in _FAULTS]
        for together in zip(*orders, strict=True):
            yield from together


async def fail_in_turn(cluster: ReplicatedCluster, seconds: float, random: Random, load: Load) -> Rows:
    rows: Rows = {}
    until = time.monotonic() + seconds
    for number, (replica, how) in enumerate(turns(cluster, random)):
        # One fault of each kind in any case, however long a start takes on a busy machine.
        if number >= len(_FAULTS) and time.monotonic() > until:
            break
        load.answers = load.answers.following()
        begin_fault(cluster, replica, how)
        await asyncio.sleep(random.uniform(*_LASTS[replica.is_elected]))
        end_fault(cluster, replica, how)
        # One at a time: the next may be the only other one of its kind.
        if how == KILL:
            await asyncio.to_thread(replica.wait_well)
        await asyncio.sleep(random.uniform(1.0, 3.0))
        rows.setdefault((replica.name, how), Answers(time.monotonic())).add(load.answers)
    return rows


def begin_fault(cluster: ReplicatedCluster, replica: Replica, how: str) -> None:
    match how:
        case "kill -9":
            replica.kill()
        case "pause":
            replica.pause()
        case _:
            cluster.links.cut(replica.name)


def end_fault(cluster: ReplicatedCluster, replica: Replica, how: str) -> None:
    match how:
        case "kill -9":
            replica.start()
        case "pause":
            replica.resume()
        case _:
            cluster.links.heal(replica.name)


async def keep_up(cluster: ReplicatedCluster) -> None:
    while True:
        for each in cluster.replicas:
            each.keep_up()
        await asyncio.sleep(0.5)


async def run(directory: Path, seconds: float, seed: int) -> tuple[Rows, Load, list[str]]:
    with replicated(directory) as cluster:
        load = Load(cluster)
        await load.prepare()
        working, minding = asyncio.create_task(load.run()), asyncio.create_task(keep_up(cluster))
        try:
            rows = await fail_in_turn(cluster, seconds, Random(seed), load)
            load.stopping.set()
            await working
            return rows, load, await load.problems()
        finally:
            for task in (working, minding):
                task.cancel()
            await asyncio.gather(working, minding, return_exceptions=True)


def tell(rows: Rows, load: Load) -> None:
    print("| replica | fault | writes answered | not answered | available | longest gap |")
    print("| --- | --- | --- | --- | --- | --- |")
    total = Answers(time.monotonic())
    for (name, how), answers in sorted(rows.items()):
        print(f"| {name} | {how} | {answers} |")
        total.add(answers)
    print(f"| all | | {total} |")
    given, gaps = [each.given for each in load.held], [len(each) for each in load.gaps]
    print(f"\n{load.pods} pods; devices given, as each server told it: {given}; watches begun anew {gaps}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--logs", help="a new directory for all logs and data; without it they are kept only on failure"
    )
    given = parser.parse_args()
    if given.logs:
        Path(given.logs).mkdir(parents=True)
    directory = given.logs or tempfile.mkdtemp(prefix="drakit-chaos-")
    print(f"logs in {directory}")
    rows, load, problems = asyncio.run(run(Path(directory), given.minutes * 60, given.seed))
    if not problems and not given.logs:
        shutil.rmtree(directory)
    tell(rows, load)
    print(*problems or ["nothing lost, nothing doubled, no device given twice"], sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
