"""Read one object, or many.

In:  a GET of an object or a collection.
Out: objects. All objects of a list are as of one revision. A long list comes in pages; a token leads to the next.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence

import msgspec

from drakit.api.codec.protobuf import encode_list
from drakit.api.exchange import ManyObjects, OneObject, Parted
from drakit.api.registry import Kind
from drakit.apiserver.failures import ApiError, bad_request, too_new
from drakit.apiserver.requests.continuetokens import Continue, decode_continue, encode_continue
from drakit.apiserver.requests.options import EXACT, ListOptions, parse_revision
from drakit.apiserver.storage.objects import ObjectContent, StoredObject
from drakit.apiserver.verbs.context import ApiCall, ServerContext
from drakit.apiserver.verbs.selection import SelectionPredicate
from drakit.base import status
from drakit.base.status import ListMeta
from drakit.store import Compacted, KeyNotFound, Record, RecordPage

_ITEMS, _END = b',"items":[', b"]}\n"
_PART = 256 * 1024
"""Bytes of a list that are sent at a time."""
_LOOKED_AT_TOGETHER = 64
"""Objects whose labels and fields are compared before others have their turn."""
log = logging.getLogger("drakit.apiserver")

_CHUNK = 2_000
"""Records read at a time when a selection may leave few of them."""
_MADE_TOGETHER = 512
"""Objects that are put into a list without a pause: a few microseconds each. Most lists are shorter."""
_ENCODED_TOGETHER = 50
"""Messages encoded without a pause: a pod takes about 5 µs if it is like those before it, and 50 if not."""
_TOO_OLD = "The resourceVersion for the provided list is too old."
_CONTINUE_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


class ListContent(ManyObjects, Parted):
    """A list as the content of a response."""

    __slots__ = ("_size", "kind", "metadata", "objects", "version")

    def __init__(self, kind: Kind, version: str, objects: Sequence[StoredObject], metadata: ListMeta) -> None:
        self.kind = kind
        self.version = version
        self.objects = objects
        self.metadata = metadata
        self._size: int | None = None
        """Bytes of the objects, once they were counted."""

    @property
    def items(self) -> Sequence[OneObject]:
        return [ObjectContent(stored, self.version) for stored in self.objects]

    def encode(self) -> bytes:
        version = self.version
        return b'%b,"items":[%b]}\n' % (
            self._head(),
            b",".join([b"{" + stored.body(version) for stored in self.objects]),
        )

    def parts(self) -> tuple[int, Iterator[bytes]]:
        head = self._head()
        # Each object has a brace at its start, and a comma before it unless it is the first.
        size = self._size if self._size is not None else self._count(self.objects)
        size += max(2 * len(self.objects) - 1, 0)
        return len(head) + len(_ITEMS) + size + len(_END), self._parts(head)

    def _count(self, objects: Sequence[StoredObject]) -> int:
        """Bytes of objects. The JSON of short ones is made."""
        return sum([stored.body_size(self.version) for stored in objects])

    def _head(self) -> bytes:
        start = {"kind": self.kind.list_kind, "apiVersion": self.kind.group_version(self.version)}
        return msgspec.json.encode({**start, "metadata": self.metadata})[:-1]

    def _parts(self, head: bytes) -> Iterator[bytes]:
        pending, size, lead = [head, _ITEMS], 0, b"{"
        for stored in self.objects:
            body = stored.passing_body(self.version)
            pending += (lead, body)
            size, lead = size + len(body), b",{"
            if size >= _PART:
                yield b"".join(pending)
                pending, size = [], 0
        yield b"".join((*pending, _END))

    def encode_protobuf(self) -> bytes:
        kind, group_version = self.kind, self.kind.group_version(self.version)
        items = [stored.message(self.version) for stored in self.objects]
        return encode_list(group_version, kind.list_kind, msgspec.to_builtins(self.metadata), items)

    async def make_bodies(self) -> None:
        """Make the JSON of short objects, each once in its life, and let other requests in between."""
        size = 0
        for start in range(0, len(self.objects), _MADE_TOGETHER):
            if start:
                await asyncio.sleep(0)
            size += self._count(self.objects[start : start + _MADE_TOGETHER])
        self._size = size

    async def make_messages(self) -> None:
        """Make the messages of the objects, each once in its life, and let other requests in between."""
        for start in range(0, len(self.objects), _ENCODED_TOGETHER):
            for stored in self.objects[start : start + _ENCODED_TOGETHER]:
                stored.message(self.version)
            await asyncio.sleep(0)


async def get(context: ServerContext, call: ApiCall) -> StoredObject:
    """The object as it is now. That is at least as new as any resourceVersion that a client can name."""
    wanted = call.request.parameter("resourceVersion")
    if wanted:
        await _check_not_future(context, parse_revision(wanted))
    found = await context.objects.get(call.kind, call.namespace, call.name)
    if not found.is_readable:
        found.document  # noqa: B018 - raises, and says what is wrong
    return found


async def list_objects(context: ServerContext, call: ApiCall) -> ListContent:
    options = await context.list_options(call.request)
    selection = SelectionPredicate(call.kind, call.target.group_version, call.namespace, "", options)
    return await collect(context, call.kind, call.version, selection, options)


async def collect(
    context: ServerContext, kind: Kind, version: str, selection: SelectionPredicate, options: ListOptions
) -> ListContent:
    token = _token(options)
    revision = await _revision(context, options, token)
    try:
        if selection.key is not None:
            return await _single(context, kind, version, selection, selection.key, revision)
        return await _pages(context, kind, version, selection, options, token, revision)
    except Compacted:
        raise _expired(token) from None


def _token(options: ListOptions) -> Continue | None:
    if not options.continue_:
        return None
    if options.resource_version and options.resource_version != "0":
        raise bad_request("specifying resource version is not allowed when using continue")
    return decode_continue(options.continue_)


async def _revision(context: ServerContext, options: ListOptions, token: Continue | None) -> int | None:
    """The revision to read at; None is the current one."""
    if token is not None:
        return token.revision if token.revision > 0 else None
    wanted = options.revision
    if not wanted:
        return None
    await _check_not_future(context, wanted)
    # Without resourceVersionMatch, a list with a limit is exact and one without is "not older than": as upstream.
    exact = options.match == EXACT or (not options.match and options.limit > 0)
    return wanted if exact else None


async def _check_not_future(context: ServerContext, wanted: int) -> None:
    """Refuse a revision that the store has not reached.

    Upstream waits a while, because its cache may lag behind etcd. Here nothing lags, so waiting would be in vain.
    """
    current = await context.objects.store.revision()
    if wanted > current:
        raise too_new(wanted, current)


async def _single(
    context: ServerContext, kind: Kind, version: str, selection: SelectionPredicate, key: str, revision: int | None
) -> ListContent:
    """The list of one object, which the field selector names: read that object alone."""
    store = context.objects.store
    current = await store.revision()
    try:
        stored = [context.objects.from_record(kind, await store.get(key, revision=revision))]
    except KeyNotFound:
        stored = []
    meta = ListMeta(resource_version=str(revision or current))
    return ListContent(kind, version, [each for each in stored if selection.matches(each)], meta)


async def _pages(
    context: ServerContext,
    kind: Kind,
    version: str,
    selection: SelectionPredicate,
    options: ListOptions,
    token: Continue | None,
    revision: int | None,
) -> ListContent:
    """Read until the page is full. A selection may leave few of the records that are read."""
    limit = max(options.limit, 0)
    after = selection.prefix + token.after if token is not None else ""
    found: list[StoredObject] = []
    selective = not selection.everything
    while True:
        asked = (_CHUNK if limit else 0) if selective else limit
        page = await context.objects.store.list(selection.prefix, revision=revision, limit=asked, after=after)
        revision = page.revision
        for index, record in enumerate(page.records):
            stored = context.objects.from_record(kind, record)
            if not (index + 1) % (_LOOKED_AT_TOGETHER if selective else _MADE_TOGETHER):
                await asyncio.sleep(0)
            if not stored.is_readable:
                log.error("the list leaves out %s: its stored value is damaged", stored.key)
            elif not selective or selection.matches(stored):
                found.append(stored)
            if limit and len(found) == limit:
                return _page(kind, version, selection, found, page, record, len(page.records) - index - 1)
        # The following pages are read at the same revision: one list, one revision.
        if not page.remaining:
            return ListContent(kind, version, found, ListMeta(resource_version=str(revision)))
        after = page.records[-1].key


def _page(
    kind: Kind,
    version: str,
    selection: SelectionPredicate,
    found: list[StoredObject],
    page: RecordPage,
    last: Record,
    unread: int,
) -> ListContent:
    remaining = page.remaining + unread
    if not remaining:
        return ListContent(kind, version, found, ListMeta(resource_version=str(page.revision)))
    meta = ListMeta(
        resource_version=str(page.revision),
        continue_=encode_continue(page.revision, last.key.removeprefix(selection.prefix)),
        # With a selector nobody knows how many of the remaining records match.
        remaining_item_count=remaining if selection.everything else None,
    )
    return ListContent(kind, version, found, meta)


def _expired(token: Continue | None) -> ApiError:
    """410. With a continue token, offer one that goes on from now: the list is then of two revisions."""
    if token is None:
        return ApiError(status.expired(_TOO_OLD))
    answer = status.expired(_CONTINUE_TOO_OLD)
    again = ListMeta(continue_=encode_continue(-1, token.after))
    return ApiError(msgspec.structs.replace(answer, metadata=again))
