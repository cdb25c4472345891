"""The journal in a process of its own: flushes neither wait for the interpreter that serves requests nor take it.

In:  writes, from the loop, in their order.
Out: frames to the process, which makes the same calls of the journal; their outcome, on the loop.

When the process is gone (killed, out of memory), another one is started, and writers wait. Of what the old one was sent
nobody knows whether it is on disk: the last revision of the file tells. Only if no new one can be started do writes
fail, and then until the server starts again, as it is not known here what the file holds.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self, cast

import msgspec

from drakit.base.errors import DrakitError
from drakit.store.errors import Corrupt, StoreClosed, StoreLocked, StoreUnavailable, WriteInDoubt
from drakit.store.groupcommit import Settle
from drakit.store.journal import row_of
from drakit.store.journalframes import LENGTH, frame, read_frame
from drakit.store.records import StoreEvent

log = logging.getLogger("drakit.store")

_STARTS = 5
"""How often in a row a process is started before writes fail."""
_PAUSE = 0.2
_ERRORS: dict[str, Callable[[str], DrakitError]] = {"Corrupt": Corrupt, "StoreLocked": StoreLocked}
"""Errors that the process tells by name. All others mean that the store is not available."""


class _Call(msgspec.Struct):
    """What the process was told to do, until it has answered."""

    frame: bytes
    settle: Settle
    last: int = 0
    """The last revision of an append."""


class JournalProcess(asyncio.Protocol):
    """Use `start`. Invariant: `_calls` are those without an answer, in their order."""

    def __init__(self, path: Path, revision: int) -> None:
        self._path = path
        self._revision = revision
        """The last that is known to be on disk."""
        self._loop = asyncio.get_running_loop()
        self._calls: deque[_Call] = deque()
        self._received = bytearray()
        self._transport: asyncio.WriteTransport | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._starting: asyncio.Task[None] | None = None
        self._broken: DrakitError | None = None

    @classmethod
    async def start(cls, path: Path, revision: int) -> Self:
        """Start one for a file whose last revision that is. Raise what `Journal.open` raises."""
        made = cls(path, revision)
        found = await made._start_process()
        if found != revision:
            await made.close()
            raise _foreign(path)
        return made

    @property
    def pid(self) -> int:
        """Of the process that writes now."""
        return self._process.pid if self._process is not None else 0

    def append(self, events: Sequence[StoreEvent], settle: Settle) -> None:
        last = events[-1].revision

        def note(error: BaseException | None) -> None:
            if error is None:
                self._revision = last
            settle(error)

        self._send(_Call(frame(("append", [row_of(each) for each in events])), note, last))

    def discard(self, compacted: int, revisions: Sequence[int]) -> asyncio.Future[None]:
        outcome: asyncio.Future[None] = self._loop.create_future()

        def settle(error: BaseException | None) -> None:
            if outcome.done():
                return
            if error is None:
                outcome.set_result(None)
            else:
                outcome.set_exception(error)
                outcome.exception()  # who does not wait for it need not be told

        self._send(_Call(frame(("discard", compacted, list(revisions))), settle))
        return outcome

    async def close(self) -> None:
        """End the process, after all that it was sent. Idempotent."""
        self._broken = self._broken or StoreClosed()
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait([self._starting])
        if self._transport is not None:
            self._transport.close()
        if self._process is not None:
            await asyncio.to_thread(self._process.wait)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= LENGTH.size:
            end = LENGTH.size + LENGTH.unpack_from(self._received)[0]
            if len(self._received) < end:
                return
            answer = msgspec.msgpack.decode(self._received[LENGTH.size : end])
            del self._received[:end]
            self._calls.popleft().settle(_error_of(answer))

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._received.clear()
        if self._broken is None:
            log.error(
                "the process that writes %s has ended (%s): starting another", self._path, exc or "no reason given"
            )
            self._starting = self._loop.create_task(self._start_again())

    def _send(self, call: _Call) -> None:
        if self._broken is not None:
            self._loop.call_soon(call.settle, self._broken)
            return
        self._calls.append(call)
        if self._transport is not None:  # else it is sent when there is a process again
            self._transport.write(call.frame)

    async def _start_process(self) -> int:
        """Start a process that opens the file; return the last revision in it."""
        self._process, ours, found = await asyncio.to_thread(_spawn, self._path)
        await self._loop.create_unix_connection(lambda: self, sock=ours)
        return found

    async def _start_again(self) -> None:
        error: DrakitError = StoreUnavailable("not started")
        for _ in range(_STARTS):
            # It may live on without its socket, and then it has the file.
            if self._process is not None:
                self._process.kill()
                await asyncio.to_thread(self._process.wait)
            try:
                found = await self._start_process()
            except DrakitError as failure:
                error = failure
                await asyncio.sleep(_PAUSE)
            else:
                self._go_on(found)
                return
        self._break(error)

    def _go_on(self, found: int) -> None:
        """Settle what turned out to be on disk, and send the rest again."""
        unsure = [call for call in self._calls if call.last]
        if found != self._revision and not (unsure and found == unsure[0].last):
            self._break(_foreign(self._path))
            return
        for call in unsure:
            if call.last <= found:
                self._calls.remove(call)
                call.settle(None)
        for call in self._calls:
            cast("asyncio.WriteTransport", self._transport).write(call.frame)

    def _break(self, error: DrakitError) -> None:
        self._broken = StoreUnavailable(f"{error}; until the server starts again nothing can be written")
        log.error("%s cannot be written to: %s", self._path, self._broken)
        calls, self._calls = self._calls, deque()
        for call in calls:
            call.settle(WriteInDoubt(str(error)))
        if self._transport is not None:
            self._transport.close()


def _spawn(path: Path) -> tuple[subprocess.Popen[bytes], socket.socket, int]:
    """A process that has opened the file, the socket to it, and the last revision that it found."""
    ours, theirs = socket.socketpair()
    with theirs:
        command = [sys.executable, "-P", "-m", "drakit.store.journalwriter", str(theirs.fileno()), str(path)]
        process = subprocess.Popen(command, pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL)
    try:
        with ours.makefile("rb") as stream:
            found = read_frame(stream)
        if found is None:
            raise StoreUnavailable(f"the process that writes {path} ended at its start")
        if not isinstance(found, int):
            raise cast("DrakitError", _error_of(found))
    except BaseException:
        ours.close()
        process.kill()
        process.wait()
        raise
    return process, ours, found


def _foreign(path: Path) -> StoreLocked:
    return StoreLocked(f"{path} was written by another process meanwhile")


def _error_of(answer: Sequence[str]) -> DrakitError | None:
    """The error that the process told of by its name and text; none for an empty answer."""
    if not answer:
        return None
    name, text = answer
    return _ERRORS.get(name, StoreUnavailable)(text)
