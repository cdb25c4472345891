"""Watch objects.

In:  the events of the store under one prefix.
Out: ADDED, MODIFIED, DELETED, BOOKMARK, ERROR. An object that stops matching the selection is DELETED to this watch.

An idle watch waits for the store and for one deadline. An event is encoded once, however many clients watch.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

import msgspec

from drakit.api.exchange import EventStream, WatchEvent
from drakit.api.registry import Kind
from drakit.apiserver.failures import ApiError, too_new, too_old, translate
from drakit.apiserver.requests.options import ListOptions
from drakit.apiserver.storage.objects import ObjectContent, StoredObject
from drakit.apiserver.storage.objectstore import ObjectStore
from drakit.apiserver.verbs.context import ApiCall, ServerContext
from drakit.apiserver.verbs.selection import SelectionPredicate
from drakit.base.clock import Clock
from drakit.store import Compacted, FutureRevision, Record, StoreClosed, StoreEvent, StoreWatch, WatcherTooSlow

ADDED, MODIFIED, DELETED, BOOKMARK, ERROR = "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"
BOOKMARK_SECONDS = 60.0
LONGEST_SECONDS = 3600.0
SHORTEST_DEFAULT = 1800.0
INITIAL_END = "k8s.io/initial-events-end"
_BATCH = 512
"""Initial objects sent in one piece, as JSON that is there already."""
_ENCODED_TOGETHER = 50
"""Initial objects sent in one piece that have to be encoded, which takes about 40 µs for a pod."""

_PIECE = 256 * 1024
"""Bytes of events that are sent in one piece. A reader that is behind holds one in memory, not all that it missed."""
_LOOKED_AT_TOGETHER = 64
"""Objects that are compared with the selection before others have their turn."""

Encode = Callable[[str, StoredObject], bytes]
EncodeDocument = Callable[[str, Mapping[str, Any]], bytes]
Step = tuple[str, StoredObject]
"""The type of an event and its object, not encoded yet."""


class ObjectStream(EventStream):
    """A watch over the objects of one kind. Invariant: events come in the order of revisions, none twice."""

    def __init__(
        self,
        call: ApiCall,
        objects: ObjectStore,
        clock: Clock,
        selection: SelectionPredicate,
        options: ListOptions,
        seconds: float,
    ) -> None:
        self.kind: Kind = call.kind
        self.version = call.version
        self.sent = 0
        self._objects = objects
        self._clock = clock
        self._selection = selection
        self._options = options
        self._deadline = clock.monotonic() + seconds
        self._watch: StoreWatch | None = None
        self._after = 0
        self._initial: list[StoredObject] = []
        self._error: ApiError | None = None
        self._alarm: asyncio.Future[None] | None = None
        self._reader: asyncio.Task[object] | None = None
        self._rung = False
        self._encode: Encode = self._plain
        self._encode_document: EncodeDocument = encode_line
        self._batch = _BATCH
        self._mark: dict[str, object] = {"kind": self.kind.kind, "apiVersion": self.kind.group_version(self.version)}
        self.on_close: Callable[[int], None] | None = None

    def encode_with(self, encode: Encode, mark: dict[str, object] | None = None) -> None:
        """Send something else than JSON objects: tables, metadata, protobuf. `mark` is the head of bookmarks."""
        self._encode, self._batch = encode, _ENCODED_TOGETHER
        self._mark = self._mark if mark is None else mark

    def encode_documents_with(self, encode: EncodeDocument) -> None:
        """How an event is written whose object is a document: a bookmark, an error."""
        self._encode_document = encode

    async def open(self) -> None:
        """Find the revision to start after. If that is impossible, the first and only event is the ERROR."""
        store, options = self._objects.store, self._options
        place = self._selection.key or self._selection.prefix
        wanted, current = options.revision, await store.revision()
        try:
            if options.initial_events or (options.initial_events is None and not wanted):
                if wanted > current:
                    raise FutureRevision(wanted, current)
                # One revision for the initial objects and for the start of the watch: nothing is missed or sent twice.
                page = await store.list(place)
                await self._select(page.records)
                wanted = page.revision
            # A revision from the future is no error for a watch: events up to it are skipped (see `_step`).
            self._after = wanted or current
            self._watch = await store.watch(place, after=min(self._after, current))
        except Compacted as error:
            self._error = too_old(error.revision, error.compacted)
        except FutureRevision as error:
            self._error = too_new(error.revision, error.current)

    async def _select(self, records: Sequence[Record]) -> None:
        """Find the initial objects, some at a time: a selector may be as long as a URL."""
        for start in range(0, len(records), _LOOKED_AT_TOGETHER):
            page = records[start : start + _LOOKED_AT_TOGETHER]
            some = [self._objects.from_record(self.kind, record) for record in page]
            self._initial += [each for each in some if each.is_readable and self._selection.matches(each)]
            if not self._selection.everything or not (start + _LOOKED_AT_TOGETHER) % _BATCH:
                await asyncio.sleep(0)

    async def lines(self) -> AsyncIterator[bytes]:
        async for steps in self._batches():
            self.sent += len(steps)
            lines: list[bytes] = []
            size = 0
            for step in steps:
                lines.append(step if isinstance(step, bytes) else self._encode(*step))
                size += len(lines[-1])
                if size >= _PIECE:
                    yield b"".join(lines)
                    lines, size = [], 0
            if lines:
                yield b"".join(lines)

    async def events(self) -> AsyncIterator[WatchEvent]:
        async for steps in self._batches():
            self.sent += len(steps)
            for step in steps:
                yield self._event(step)

    async def close(self) -> None:
        """Idempotent. A reader that waits gets no more events, and ends."""
        watch, self._watch = self._watch, None
        alarm, self._alarm = self._alarm, None
        done, self.on_close = self.on_close, None
        # The alarm comes last. Its end takes a turn of the loop, in which somebody else may close this stream as well
        # and rely on the watch being closed.
        if watch is not None:
            await watch.close()
        if done is not None:
            done(self.sent)
        if alarm is not None:
            alarm.cancel()
            await asyncio.gather(alarm, return_exceptions=True)

    async def _batches(self) -> AsyncIterator[list[Step | bytes]]:
        try:
            if self._error is not None:
                yield [self._failure(self._error)]
                return
            for number, batch in enumerate(self._initial_batches()):
                if number:  # the connection may take it all without waiting for anything
                    await asyncio.sleep(0)
                yield batch
            async for events in self._store_events():
                if events:
                    yield events
        finally:
            await self.close()

    def _initial_batches(self) -> Iterator[list[Step | bytes]]:
        initial, self._initial = self._initial, []
        for start in range(0, len(initial), self._batch):
            yield [(ADDED, stored) for stored in initial[start : start + self._batch]]
        if self._options.initial_events and self._options.bookmarks and self._watch is not None:
            yield [self._bookmark(self._watch.progress, end=True)]

    async def _store_events(self) -> AsyncIterator[list[Step | bytes]]:
        while (watch := self._watch) is not None:
            if self._pause() <= 0:
                if self._options.bookmarks:
                    yield [self._bookmark(watch.progress)]
                return
            try:
                events = await self._take(watch)
            except (WatcherTooSlow, StoreClosed):
                return  # the stream ends; the client watches again from the last version that it has seen
            if events is None:
                if self._options.bookmarks and self._clock.monotonic() < self._deadline:
                    yield [self._bookmark(watch.progress)]
            elif not events:
                return
            else:
                together = len(events) if self._selection.everything else _LOOKED_AT_TOGETHER
                for start in range(0, len(events), together):
                    some = events[start : start + together]
                    yield [step for event in some if (step := self._step(event)) is not None]
                    if len(some) < len(events):
                        await asyncio.sleep(0)

    def _pause(self) -> float:
        left = self._deadline - self._clock.monotonic()
        return min(left, BOOKMARK_SECONDS) if self._options.bookmarks else left

    async def _take(self, watch: StoreWatch) -> tuple[StoreEvent, ...] | None:
        """The next events; None when it is time for a bookmark, or to end.

        One alarm serves many reads, so that an event costs no task and no timer of its own. The alarm cancels the
        read; a cancelled read of the store loses no event.
        """
        if self._alarm is None:
            self._alarm = asyncio.ensure_future(self._clock.sleep(self._pause()))
            self._alarm.add_done_callback(self._ring)
        elif self._alarm.done():
            self._alarm = None
            return None
        self._reader = asyncio.current_task()
        try:
            return await watch.take()
        except asyncio.CancelledError:
            # Only if the alarm alone cancelled us. Otherwise somebody wants this task to end.
            if self._rung and self._reader is not None and self._reader.uncancel() == 0:
                return None
            raise
        finally:
            self._reader, self._rung = None, False

    def _ring(self, alarm: asyncio.Future[None]) -> None:
        # An alarm of an earlier read may come late: two that cancel one read would end the reader's task.
        if alarm is self._alarm and self._reader is not None and not alarm.cancelled():
            self._alarm, self._rung = None, True
            self._reader.cancel()

    def _step(self, event: StoreEvent) -> Step | None:
        """The event as this selection sees it; None when neither state of the object matches."""
        if event.revision <= self._after:
            return None
        selection, objects = self._selection, self._objects
        # Whether it matched before decides between ADDED and MODIFIED, and whether its end is an event at all.
        before = event.previous is not None and (
            selection.everything or selection.matches(objects.from_record(self.kind, event.previous))
        )
        if event.record is None:
            return (DELETED, objects.from_deletion(self.kind, event)) if before else None
        stored = objects.from_record(self.kind, event.record)
        if selection.everything or selection.matches(stored):
            return (MODIFIED if before else ADDED), stored
        return (DELETED, self._left(event)) if before else None

    def _left(self, event: StoreEvent) -> StoredObject:
        """The object as it was when it last matched, at the revision of the change: as upstream."""
        return self._objects.before(self.kind, event)

    def _plain(self, type_: str, stored: StoredObject) -> bytes:
        return stored.line(self.version, type_)

    def _bookmark(self, revision: int, *, end: bool = False) -> bytes:
        # Never older than where the watch began: a client would go back in time.
        metadata: dict[str, object] = {"resourceVersion": str(max(revision, self._after)), "creationTimestamp": None}
        if end:
            metadata["annotations"] = {INITIAL_END: "true"}
        return self._encode_document(BOOKMARK, {**self._mark, "metadata": metadata})

    def _failure(self, error: ApiError) -> bytes:
        return self._encode_document(ERROR, msgspec.to_builtins(error.status))

    def _event(self, step: Step | bytes) -> WatchEvent:
        if not isinstance(step, bytes):
            return WatchEvent(step[0], ObjectContent(step[1], self.version), str(step[1].revision))
        if self._error is not None:
            return WatchEvent(ERROR, None, status=self._error.status)
        metadata = msgspec.json.decode(step)["object"]["metadata"]
        return WatchEvent(BOOKMARK, None, metadata["resourceVersion"], initial_end="annotations" in metadata)


async def watch(context: ServerContext, call: ApiCall) -> ObjectStream:
    """Handle a watch of a collection or of one object."""
    options = await context.list_options(call.request, watch=True)
    selection = SelectionPredicate(call.kind, call.target.group_version, call.namespace, call.name, options)
    stream = ObjectStream(call, context.objects, context.clock, selection, options, _seconds(options, context.random))
    try:
        await stream.open()
    except Exception as error:
        raise translate(error) from error
    return stream


def encode_line(type_: str, document: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode({"type": type_, "object": document}) + b"\n"


def _seconds(options: ListOptions, random: Random) -> float:
    """How long the watch lasts: as asked, else a random time, so that not all clients come back at once."""
    if options.timeout:
        return max(0.0, min(float(options.timeout), LONGEST_SECONDS))
    return SHORTEST_DEFAULT * (1 + random.random())
