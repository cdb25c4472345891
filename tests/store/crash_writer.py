"""A process that writes to a store until it is killed, and says on stdout what was acknowledged.

Each line is `revision key value` (`-` after a deletion), written in one piece after the store's answer.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys

from drakit.store import Retention, SQLiteStore, Store

WRITERS = 16
KEEP = Retention(events=400, seconds=None)  # little, so that compaction is killed in the middle too


def acknowledge(revision: int, key: str, value: bytes | None) -> None:
    os.write(1, f"{revision} {key} {'-' if value is None else value.decode()}\n".encode())


async def write(store: Store, writer: int, chance: random.Random) -> None:
    """Own keys, so that what was last acknowledged for a key is known."""
    current = {record.key: record for record in (await store.list(f"/{writer:02d}/")).records}
    while True:
        key = f"/{writer:02d}/{chance.randrange(5)}"
        value = b"%d" % chance.randrange(10**9) * chance.choice((1, 1, 1, 300))
        if key not in current:
            current[key] = await store.create(key, value)
        elif chance.random() < 0.7:
            current[key] = await store.update(key, value, expected=current[key].revision)
        else:
            gone = await store.delete(key, expected=current.pop(key).revision)
            acknowledge(gone.revision, key, None)
            continue
        acknowledge(current[key].revision, key, value)


async def main(path: str, seed: int) -> None:
    store = await SQLiteStore.open(path, retention=KEEP)
    await asyncio.gather(*(write(store, writer, random.Random(seed * 100 + writer)) for writer in range(WRITERS)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
