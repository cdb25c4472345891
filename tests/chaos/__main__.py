"""`python -m tests.chaos [--minutes 5] [--seed N]`: replicas of everything, killed and paused in turn, under load.

Prints a table of what was done to whom and what was answered meanwhile, and exits with 1 if anything was lost, doubled
or given twice.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from tests.chaos.load import Load
from tests.chaos.replicas import Replica, ReplicatedCluster, replicated


async def fail_in_turn(cluster: ReplicatedCluster, seconds: float, random: Random, load: Load) -> list[tuple[str, ...]]:
    """Kill or pause one replica after the other, each in its turn; a row for each."""
    rows: list[tuple[str, ...]] = []
    until, queue = time.monotonic() + seconds, list[Replica]()
    while time.monotonic() < until:
        queue = queue or random.sample(list(cluster.replicas), len(cluster.replicas))
        replica, how = queue.pop(), random.choice(("kill -9", "pause"))
        before = load.answers.answered, load.answers.failed
        if how == "pause":
            replica.pause()
        else:
            replica.kill()
        await asyncio.sleep(random.uniform(1.0, 3.0))
        if how == "pause":
            replica.resume()
        else:
            replica.start()
        await asyncio.sleep(random.uniform(1.0, 3.0))
        answered, failed = load.answers.answered - before[0], load.answers.failed - before[1]
        rows.append((replica.name, how, str(answered), str(failed)))
    return rows


async def keep_up(cluster: ReplicatedCluster) -> None:
    while True:
        for each in cluster.replicas:
            each.keep_up()
        await asyncio.sleep(0.5)


async def run(directory: Path, seconds: float, seed: int) -> tuple[list[tuple[str, ...]], Load, list[str]]:
    with replicated(directory) as cluster:
        load = Load(cluster)
        await load.prepare()
        working, minding = asyncio.create_task(load.run()), asyncio.create_task(keep_up(cluster))
        rows = await fail_in_turn(cluster, seconds, Random(seed), load)
        load.stopping.set()
        await working
        problems = await load.problems()
        minding.cancel()
        return rows, load, problems


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    # Kept when it fails: the logs of all replicas are in it.
    directory = tempfile.mkdtemp(prefix="drakit-chaos-")
    print(f"logs in {directory}")
    rows, load, problems = asyncio.run(run(Path(directory), given.minutes * 60, given.seed))
    if not problems:
        shutil.rmtree(directory)
    print("| replica | what | answered meanwhile | not answered |\n| --- | --- | --- | --- |")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    answers = load.answers
    share = answers.answered / max(answers.answered + answers.failed, 1)
    print(f"\n{answers.answered} writes answered, {answers.failed} not ({share:.2%} available)", end="; ")
    print(
        f"longest time without an answer {answers.longest:.1f} s; {load.pods} pods bound; "
        f"watches began anew {load.relists}"
    )
    print(*problems or ["nothing lost, nothing doubled, no device given twice"], sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
