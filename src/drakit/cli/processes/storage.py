"""Where an API server keeps its objects: a file, etcd, or memory.

In:  flags.
Out: an open store, of which old history is forgotten as long as it is open.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from drakit.base.clock import Clock, RealClock
from drakit.base.errors import DrakitError, UsageError
from drakit.base.inputfiles import read_settings
from drakit.cli.flags.files import explained
from drakit.cli.flags.groups import EtcdFlags
from drakit.cli.flags.options import names
from drakit.store import MemoryStore, SQLiteStore, Store, StoreLocked
from drakit.store.contract import EMPTY_REVISION

log = logging.getLogger("drakit.store")

LOCK_SECONDS = 10.0
_LOCK_STEP = 0.1


@asynccontextmanager
async def opened(database: Path | None, etcd: EtcdFlags) -> AsyncIterator[Store]:
    """etcd if one is given, else the file, else memory."""
    if not etcd.etcd_servers:
        async with await open_file(database, RealClock()) if database else MemoryStore() as store:
            yield store
        return
    async with await open_etcd(etcd) as store:
        compacting = asyncio.create_task(compact_steadily(store, etcd.etcd_compaction_interval, RealClock()))
        try:
            yield store
        finally:
            compacting.cancel()
            with suppress(asyncio.CancelledError):
                await compacting


async def open_file(database: Path, clock: Clock) -> Store:
    """The store in a file. One that another process has is waited for: it may be about to end.

    Raises StoreLocked when it is not let go.
    """
    end = clock.monotonic() + LOCK_SECONDS
    told = False
    while True:
        try:
            return await SQLiteStore.open(database, own_process=True)
        except StoreLocked:
            if clock.monotonic() >= end:
                raise
            if not told:
                log.warning("%s is in use by another process: waiting up to %.0f s for its end", database, LOCK_SECONDS)
            told = True
            await clock.sleep(_LOCK_STEP)


async def open_etcd(flags: EtcdFlags, *, begin_at: int = EMPTY_REVISION) -> Store:
    # gRPC takes a tenth of a second to load, and most servers do without.
    from drakit.store.etcd import EtcdAccess, EtcdStore

    if (flags.etcd_certfile is None) != (flags.etcd_keyfile is None):
        raise UsageError("--etcd-certfile and --etcd-keyfile go together")
    access = EtcdAccess(
        endpoints=names(flags.etcd_servers),
        prefix=flags.etcd_prefix,
        ca=_content("--etcd-cafile", flags.etcd_cafile),
        certificate=_content("--etcd-certfile", flags.etcd_certfile),
        key=_content("--etcd-keyfile", flags.etcd_keyfile),
    )
    return await EtcdStore.open(access, begin_at=begin_at)


def _content(flag: str, path: Path | None) -> bytes | None:
    if path is None:
        return None
    with explained(flag):
        return read_settings(path)


async def compact_steadily(store: Store, interval: float, clock: Clock) -> None:
    """Forget, again and again, what was history an interval ago. All replicas do it: the first one counts."""
    before: int | None = None
    while interval:
        await clock.sleep(interval)
        try:
            # What is compacted was the newest revision one interval ago: watches may be that far behind.
            if before is not None:
                await store.compact(before)
            before = await store.revision()
        except DrakitError as error:
            log.warning("history of the store was not compacted: %s", error)
            before = None
