"""Run `drakit` as it is, and note how long the event loop is held: `python -m benchmarks.attacking.watched FILE …`.

In:  a file, and the arguments of `drakit`.
Out: in the file, CPU seconds of the process between two beats of its loop, of every beat. On a machine with nothing
     else to do, a client waits for as long. On a busy one a wall clock would measure the neighbours.
"""

from __future__ import annotations

import asyncio
import sys
import time
from array import array
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import uvloop

T = TypeVar("T")
_BEAT_SECONDS = 0.005
_TOLD_SECONDS = 0.5
_run = uvloop.run


def write(file: Path, held: array[float]) -> None:
    file.write_bytes(held.tobytes())


async def beat(file: Path) -> None:
    """Write what was seen now and then: the process may be killed."""
    held = array("d")
    told = time.monotonic()
    while True:
        before = time.process_time()
        await asyncio.sleep(_BEAT_SECONDS)
        held.append(time.process_time() - before)
        if time.monotonic() - told > _TOLD_SECONDS:
            told = time.monotonic()
            write(file, held)


def main() -> None:
    """Commands call `uvloop.run`: put our own in its place."""
    file = Path(sys.argv[1])
    sys.argv[:] = ["drakit", *sys.argv[2:]]

    def watched(serving: Coroutine[Any, Any, T], **options: Any) -> T:
        async def both() -> T:
            beating = asyncio.create_task(beat(file))
            try:
                return await serving
            finally:
                beating.cancel()

        return _run(both(), **options)

    uvloop.run = watched  # type: ignore[assignment]
    from drakit.cli.main import run

    run()


if __name__ == "__main__":
    main()
