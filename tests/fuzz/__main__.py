"""`python -m tests.fuzz --minutes N --seed S`: send what nobody would send, and see that nothing breaks.

In:  minutes, and a seed: the same seed makes the same inputs in the same order.
Out: how many inputs there were, and exit code 1 if one raised something that is not the target's own error, or was
     answered 500.
     The number of the input that did it is told: `--only TARGET --seed S --first NUMBER` makes it again.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
import traceback
from collections.abc import Awaitable, Callable
from random import Random

from tests.fuzz.targets import TARGETS, running

Try = Callable[[Random], Awaitable[None]]


async def fuzz(minutes: float, seed: int, only: str, first: int) -> int:
    """How many inputs broke something."""
    broken = 0
    counts = dict.fromkeys(name for name in TARGETS if only in ("", name))
    ends = time.monotonic() + minutes * 60
    async with running() as api:
        number = first
        while number == first or time.monotonic() < ends:
            for name in counts:
                # Each input has a seed of its own, so that one can be made again without those before it.
                broken += not await attempt(name, TARGETS[name], Random(f"{seed}/{name}/{number}"), number, api)
            number += 1
    print(f"{number - first} inputs for each of {', '.join(counts)}: {broken} broke something")
    return broken


async def attempt(name: str, target: Callable[..., Awaitable[None]], random: Random, number: int, api: object) -> bool:
    try:
        await target(random, api)
    except Exception:
        print(f"{name}, input {number}:", file=sys.stderr)
        traceback.print_exc()
        return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=["", *TARGETS], default="")
    parser.add_argument("--first", type=int, default=0, help="the number of the first input")
    given = parser.parse_args()
    return 1 if asyncio.run(fuzz(given.minutes, given.seed, given.only, given.first)) else 0


if __name__ == "__main__":
    sys.exit(main())
