"""The journal in a thread of this process.

In:  writes, from the loop; one at a time, in their order.
Out: the same calls of the journal, in its thread; their outcome, on the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress

from drakit.store.groupcommit import Settle
from drakit.store.journal import Journal
from drakit.store.records import StoreEvent

PATIENCE = 0.003
STEP_ASIDE = 0.0005


class JournalThread:
    """Invariant: only `_executor`'s one thread touches the journal."""

    def __init__(self, journal: Journal, executor: ThreadPoolExecutor) -> None:
        self._journal = journal
        self._executor = executor
        self._loop = asyncio.get_running_loop()

    def append(self, events: Sequence[StoreEvent], settle: Settle) -> None:
        outcome = self._executor.submit(self._journal.append, events)

        def tell(done: Future[None]) -> None:
            with suppress(RuntimeError):  # the loop is gone, and nobody is left to be told
                self._loop.call_soon_threadsafe(settle, done.exception())

        outcome.add_done_callback(tell)
        self._loop.call_later(PATIENCE, self._step_aside, outcome)

    def discard(self, compacted: int, revisions: Sequence[int]) -> asyncio.Future[None]:
        outcome = asyncio.wrap_future(self._executor.submit(self._journal.discard, compacted, revisions))
        # Who does not wait for it need not be told: what cannot be deleted now is deleted with the next lot.
        outcome.add_done_callback(lambda done: None if done.cancelled() else done.exception())
        return outcome

    async def close(self) -> None:
        await asyncio.wrap_future(self._executor.submit(self._journal.close))
        self._executor.shutdown(wait=False)

    def _step_aside(self, outcome: Future[None]) -> None:
        """Let the journal's thread have the interpreter when a write takes longer than a disk usually does.

        A loop that is never idle gives the interpreter lock up at each poll, and has it back before a thread that
        waits for it has woken: that thread, its flush long done, then starves for seconds. Waiting here, for at most
        STEP_ASIDE, lets it through. If it is the disk that is slow, that costs a part of the loop's time, no more.
        """
        if not outcome.done():
            wait((outcome,), timeout=STEP_ASIDE)
            self._loop.call_later(PATIENCE, self._step_aside, outcome)
