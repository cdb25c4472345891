"""kill -9 in the middle of a write load: what was acknowledged is there, and revisions never go back."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from drakit.store import RecordPage, SQLiteStore, Stats, StoreEvent
from tests.store.engines import UNBOUNDED

ROUNDS = 50


class Written(NamedTuple):
    revision: int
    key: str
    value: bytes | None


class Found(NamedTuple):
    """What a new process would find in the file."""

    stats: Stats
    state: RecordPage
    events: dict[int, StoreEvent]


def parse(line: bytes) -> Written:
    revision, key, value = line.split()
    return Written(int(revision), key.decode(), None if value == b"-" else value)


def write_and_kill(path: Path, seed: int, lines: int) -> list[Written]:
    """Let a process write until it has had so many answers, kill it, and return all the answers it had."""
    command = [sys.executable, "-m", "tests.store.crash_writer", str(path), str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        heard = [process.stdout.readline() for _ in range(lines)]
        process.send_signal(signal.SIGKILL)
        heard += process.stdout.readlines()
    assert process.returncode == -signal.SIGKILL
    return [parse(line) for line in heard if line.endswith(b"\n")]


async def look(path: Path) -> Found:
    async with await SQLiteStore.open(path, retention=UNBOUNDED) as store:
        stats = await store.stats()
        async with await store.watch("", after=stats.compacted) as watch:
            events = await watch.take() if stats.history_events else ()
        return Found(stats, await store.list(""), {event.revision: event for event in events})


def check(written: list[Written], found: Found) -> None:
    state = {record.key: record for record in found.state.records}
    for write in written:
        assert write.revision <= found.stats.revision
        if write.revision > found.stats.compacted:
            event = found.events[write.revision]
            assert (event.key, event.value) == (write.key, write.value)
    for key, write in {write.key: write for write in sorted(written)}.items():
        later = any(event.key == key and event.revision > write.revision for event in found.events.values())
        if not later:  # else the last write was not acknowledged, but made it
            assert (state[key].value if key in state else None) == write.value


@pytest.mark.slow
def test_acknowledged_writes_survive_fifty_kills_and_revisions_never_go_back(tmp_path: Path) -> None:
    path, chance, revision, compacted = tmp_path / "store.db", random.Random(7), 0, 0
    for number in range(ROUNDS):
        written = write_and_kill(path, number, chance.randrange(1, 250))
        assert min(written).revision > revision
        assert len({write.revision for write in written}) == len(written)
        found = asyncio.run(look(path))
        check(written, found)
        assert found.stats.compacted >= compacted
        revision, compacted = found.stats.revision, found.stats.compacted
    assert compacted > 1000  # it was killed while compacting, too
