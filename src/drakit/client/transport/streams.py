"""A watch that comes as bytes.

In:  chunks of a response, in which each line is `{"type": …, "object": …}`.
Out: events. A stream that breaks in the middle raises ConnectionFailed; one that the server ends, ends.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from functools import cached_property
from typing import Any

import msgspec

from drakit.api.exchange import EventStream, OneObject, OpenBody, WatchEvent
from drakit.api.objects.plain import from_json, from_plain
from drakit.api.registry import Kind, find_kind
from drakit.base.structs import Model
from drakit.client.decoder import internal_form
from drakit.client.failures import ConnectionFailed, decode_status

INITIAL_END = "k8s.io/initial-events-end"


class _Line(msgspec.Struct, frozen=True):
    type: str
    object: msgspec.Raw


class _Head(msgspec.Struct, frozen=True, rename="camel"):
    kind: str = ""
    api_version: str = ""


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    annotations: Mapping[str, str] | None = None


class _Bookmark(msgspec.Struct, frozen=True):
    metadata: _Metadata


_LINES = msgspec.json.Decoder(_Line)
_HEADS = msgspec.json.Decoder(_Head)
_BOOKMARKS = msgspec.json.Decoder(_Bookmark)


class WireObject(OneObject):
    """An object in bytes, decoded when somebody looks."""

    def __init__(self, data: msgspec.Raw, kind: Kind, version: str) -> None:
        self._data = data
        self._kind = kind
        self._version = version

    @cached_property
    def document(self) -> Mapping[str, Any]:
        document: dict[str, Any] = msgspec.json.decode(self._data)
        return document

    @cached_property
    def typed(self) -> Model:
        kind = self._kind
        if kind.fully_typed and self._version == kind.internal:
            return from_json(kind.model, bytes(self._data))
        if kind.fully_typed:
            return from_plain(kind.model, internal_form(kind, self._version, dict(self.document)))
        return from_plain(kind.model, self.document)

    def encode(self) -> bytes:
        return bytes(self._data)


class ReceivedBody(OpenBody):
    """`chunks` yields bytes as they come, and raises ConnectionFailed when the connection breaks."""

    def __init__(self, chunks: AsyncIterator[bytes], close: Callable[[], None]) -> None:
        self._chunks = chunks
        self._close = close

    def pieces(self) -> AsyncIterator[bytes]:
        return self._chunks

    async def close(self) -> None:
        self._close()


class LineStream(EventStream):
    """`chunks` yields bytes as they come, and raises ConnectionFailed when the connection breaks."""

    def __init__(self, chunks: AsyncIterator[bytes], close: Callable[[], None]) -> None:
        self._chunks = chunks
        self._close = close
        self._closed = False
        self._kind: tuple[Kind, str] | None = None

    async def lines(self) -> AsyncIterator[bytes]:
        rest: list[bytes] = []
        async for chunk in self._chunks:
            head, *more = chunk.split(b"\n")
            rest.append(head)
            if not more:
                continue
            yield b"".join(rest)
            for line in more[:-1]:
                yield line
            rest = [more[-1]]
        if any(rest) and not self._closed:
            raise ConnectionFailed("the watch broke off in the middle of an event", sent=True)

    async def events(self) -> AsyncIterator[WatchEvent]:
        async for line in self.lines():
            if line:
                yield self._event(line)

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._close()

    def _event(self, line: bytes) -> WatchEvent:
        try:
            found = _LINES.decode(line)
            if found.type == "BOOKMARK":
                metadata = _BOOKMARKS.decode(found.object).metadata
                end = bool(metadata.annotations and metadata.annotations.get(INITIAL_END) == "true")
                return WatchEvent("BOOKMARK", None, metadata.resource_version, initial_end=end)
            if found.type == "ERROR":
                return WatchEvent("ERROR", None, status=decode_status(bytes(found.object)))
            wire = WireObject(found.object, *self._kind_of(found.object))
        except msgspec.DecodeError as error:
            raise ConnectionFailed(f"the watch sent something that is no event: {error}", sent=True) from None
        return WatchEvent(found.type, wire, wire.typed.metadata.resource_version)  # type: ignore[attr-defined]

    def _kind_of(self, data: msgspec.Raw) -> tuple[Kind, str]:
        """All objects of a watch are of one kind and version: the first one says which."""
        if self._kind is None:
            head = _HEADS.decode(data)
            kind = find_kind(head.api_version, head.kind)
            if kind is None:
                raise ConnectionFailed(f"the watch sent an unknown {head.api_version} {head.kind}", sent=True)
            self._kind = kind, head.api_version.rpartition("/")[2]
        return self._kind
