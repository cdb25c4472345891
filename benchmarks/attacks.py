"""Attacks on a running server, at full size: what other clients notice, and what it costs the server.

In:  a server of its own process on loopback, with roles; an attack; a client that reads one object all the while.
Out: per attack, for how long the server's loop was held in CPU time, the 99th percentile and the worst time of those
     reads, the server's largest memory, and what was seen. The same client reads from a server that nobody attacks:
     what the machine itself is slow at shows there.

The attacker is a thread of low priority: on a machine of few cores it would else take the server's time as well, which
an attacker elsewhere cannot.

`python -m benchmarks attacks` runs all; `ATTACK=text` runs those whose name has the text, with a table of their own.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import threading
import time
from contextlib import suppress
from itertools import count
from pathlib import Path
from subprocess import PIPE

import aiohttp

from benchmarks.attacking import bombs, data, large, scheduling, strangers, users, wire
from benchmarks.attacking.scene import DEFAULT, SECONDS, Attack, Scene, scene, started
from benchmarks.report import publish

ATTACKS = (
    *strangers.ATTACKS, *wire.ATTACKS, *users.ATTACKS, *scheduling.ATTACKS, *large.ATTACKS, *bombs.ATTACKS,
    *data.ATTACKS,
)  # fmt: skip
COLUMNS = (
    "attack",
    "before",
    "held p99, worst",
    "reads",
    "read p99, worst",
    "of an idle server",
    "largest memory",
    "seen",
)
_AT_MOST = 180.0
"""Seconds of an attack."""
_LOW_PRIORITY = 10


async def measure(attack: Attack, idle: str) -> tuple[str, ...]:
    async with scene(attack) as made:
        # In a process of its own: what keeps the attacker busy must not count as the server's time.
        reading = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "benchmarks.attacks", made.url, idle, stdin=PIPE, stdout=PIPE
        )
        assert reading.stdout is not None
        await reading.stdout.readline()
        seen = "it did not end"
        with suppress(TimeoutError):
            seen, _ = await asyncio.gather(asyncio.to_thread(attack_from, attack, made), asyncio.sleep(SECONDS))
        said, _ = await reading.communicate(b"enough\n")
        times: dict[str, list[float]] = json.loads(said)
        await asyncio.sleep(1)
        held = made.beats() or [0.0]
        memory = f"{made.memory()} MiB" if made.process.poll() is None else "it died"
    reads = str(len(times["attacked"]))
    return (
        attack.name, attack.before, told(held), reads, told(times["attacked"]), told(times["idle"]), memory, seen
    )  # fmt: skip


async def measured(attack: Attack, idle: str) -> tuple[str, ...]:
    """The row of an attack, whatever happens: one that cannot be made must not take the others with it."""
    try:
        return await measure(attack, idle)
    except Exception as error:
        return (attack.name, attack.before, *[""] * (len(COLUMNS) - 3), f"it could not be measured: {error!r}")


def attack_from(attack: Attack, scene: Scene) -> str:
    """Attack from this thread, which has a priority of its own."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOW_PRIORITY)

    async def run() -> str:
        async with asyncio.timeout(_AT_MOST):
            return await attack.run(scene)

    return asyncio.run(run())


def told(times: list[float]) -> str:
    """The 99th percentile, and the worst."""
    ordered = sorted(times)
    slow = ordered[max(int(len(ordered) * 0.99) - 1, 0)]
    return f"{slow * 1000:.0f} ms, {ordered[-1] * 1000:.0f} ms"


async def all_of(chosen: list[Attack]) -> list[tuple[str, ...]]:
    with tempfile.TemporaryDirectory() as name, started(Path(name), ("apiserver",)) as (_, idle):
        rows = []
        for attack in chosen:
            rows.append(await measured(attack, idle))
            print(*rows[-1], sep=" | ", flush=True)
        return rows


def main() -> None:
    only = os.environ.get("ATTACK", "")
    publish(
        "attacks-some" if only else "attacks",
        "Attacks: CPU time that the loop is held, and reads of another client (bar: 100 ms at p99, 500 ms at worst)",
        COLUMNS,
        asyncio.run(all_of([each for each in ATTACKS if only in each.name])),
    )


async def read_meanwhile(urls: dict[str, str], times: dict[str, list[float]], *, rounds: int | None = None) -> None:
    """Read from both servers in turn, without end or so many times. A read that is not answered counts as a minute."""
    async with aiohttp.ClientSession(headers={"authorization": "Bearer of-ann"}) as session:
        for _ in count() if rounds is None else range(rounds):
            for name, url in urls.items():
                begun = time.perf_counter()
                answered = await is_answered(session, url + DEFAULT)
                times[name].append(time.perf_counter() - begun if answered else 60.0)
            await asyncio.sleep(0.005)


async def is_answered(session: aiohttp.ClientSession, url: str) -> bool:
    with suppress(aiohttp.ClientError, TimeoutError):
        async with session.get(url, ssl=False) as answer:
            await answer.read()
            return answer.status in (200, 403)
    return False


async def read_until_told(attacked: str, idle: str) -> None:
    """What the reading process does: it prints the seconds of each read when a line comes in."""
    times: dict[str, list[float]] = {"attacked": [], "idle": []}
    urls = {"attacked": attacked, "idle": idle}
    # The first reads are those of a server that has just begun.
    await read_meanwhile(urls, {"attacked": [], "idle": []}, rounds=10)
    reading = asyncio.create_task(read_meanwhile(urls, times))
    print(flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    print(json.dumps(times))


if __name__ == "__main__":
    asyncio.run(read_until_told(*sys.argv[1:]))
