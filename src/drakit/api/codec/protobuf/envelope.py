"""Objects, lists and watch events in the protobuf form of Kubernetes.

In:  bytes of `application/vnd.kubernetes.protobuf`: four bytes of magic, then an envelope with the object in it.
Out: plain data with the names of the JSON form; and the way back. What is no such message raises DecodeError.

In a watch (`;stream=watch`) each event is a frame: four bytes of length, then a WatchEvent whose object is an envelope.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from drakit.api.codec.protobuf.patterns import Patterns
from drakit.api.codec.protobuf.readers import reader_of
from drakit.api.codec.protobuf.scalarreaders import end_of_message, fields_of, read_text
from drakit.api.codec.protobuf.scalarwriters import TEXTS, sized, varint
from drakit.api.codec.protobuf.table import message_of
from drakit.api.codec.protobuf.writers import WriteMessage, writer_of
from drakit.api.text.jsontext import parse_json
from drakit.base.errors import DecodeError, Unsupported

CONTENT_TYPE = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\x00"
_FRAME = 4
# Every list kind has its metadata as field 1 and its items as field 2.
_ITEMS = b"\x12"
# contentEncoding and contentType are empty, and are written all the same, as by Go.
_NO_CONTENT_TYPE = b"\x1a\x00\x22\x00"


@cache
def has_message(api_version: str, kind: str) -> bool:
    """Whether a kind has a protobuf form. Cached without a limit: only served kinds are asked about."""
    return message_of(api_version, kind) is not None


def decode_protobuf(data: bytes) -> dict[str, Any]:
    """The object in the envelope, with apiVersion and kind."""
    if not data.startswith(MAGIC):
        raise DecodeError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    try:
        return _decode(data)
    except IndexError:
        raise end_of_message() from None


def encode_protobuf(document: Mapping[str, Any]) -> bytes:
    """An object or a list in its envelope. Nobody changes the document."""
    api_version, kind = str(document.get("apiVersion", "")), str(document.get("kind", ""))
    return encode_envelope(api_version, kind, encode_message(api_version, kind, document))


def encode_message(api_version: str, kind: str, document: Mapping[str, Any]) -> bytes:
    """The message of an object, with its length before it: so it stands in an envelope, and in a list."""
    return _writer(api_version, kind)(document)


def encode_stored(api_version: str, kind: str, text: bytes, document: Callable[[], Mapping[str, Any]]) -> bytes:
    """The same of an object whose JSON is at hand. It is decoded only if it is unlike the objects before it."""
    patterns = _patterns(api_version, kind)
    made = patterns.write(text)
    if made is None:
        made = encode_message(api_version, kind, document())
        patterns.learn(text, made)
    return made


def encode_envelope(api_version: str, kind: str, message: bytes) -> bytes:
    """`message` has its length before it."""
    return b"%b%b%b%b" % (MAGIC, _types(api_version, kind), message, _NO_CONTENT_TYPE)


def encode_list(api_version: str, kind: str, metadata: Mapping[str, Any], items: Sequence[bytes]) -> bytes:
    """A list of messages that have their length before them."""
    head = b"\x0a" + writer_of("meta.v1.ListMeta")(metadata)
    size = len(head) + sum(map(len, items)) + len(items)
    # Megabytes, so they are put together once, and not once more for each part around them.
    start = MAGIC + _types(api_version, kind) + varint(size) + head
    parts = [start, *[part for item in items for part in (_ITEMS, item)], _NO_CONTENT_TYPE]
    return b"".join(parts)


def encode_frame(type_: str, envelope: bytes) -> bytes:
    """An event of a watch, with its length before it."""
    event = b"\x0a%b\x12%b" % (TEXTS[type_], sized(b"\x0a" + sized(envelope)))
    return len(event).to_bytes(_FRAME) + event


def decode_frames(data: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    """Type and object of every event of a watch."""
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at : at + _FRAME])
        at += _FRAME
        # A frame that is cut off is an error, not an event to wait for: the data is complete.
        if at + size > len(data):
            raise end_of_message()
        yield _read_event(data, at, at + size)
        at += size


def _read_event(data: bytes, at: int, end: int) -> tuple[str, dict[str, Any]]:
    try:
        event = fields_of(data, at, end)
        raw = fields_of(data, *event.get(2, (end, end)))
        start, stop = raw.get(1, (end, end))
        return read_text(data, *event.get(1, (end, end))), decode_protobuf(data[start:stop])
    except (IndexError, TypeError):
        raise end_of_message() from None


@cache
def _types(api_version: str, kind: str) -> bytes:
    """The first field of the envelope, and the tag of the second."""
    return b"\x0a" + sized(b"\x0a%b\x12%b" % (TEXTS[api_version], TEXTS[kind])) + b"\x12"


@cache
def _writer(api_version: str, kind: str) -> WriteMessage:
    """Cached without a limit: only what the server shows is written."""
    return writer_of(_message(api_version, kind))


@lru_cache(maxsize=16)
def _patterns(api_version: str, kind: str) -> Patterns:
    """Of the kinds that were written last: patterns take memory."""
    return Patterns(_message(api_version, kind))


def _message(api_version: str, kind: str) -> str:
    name = message_of(api_version, kind)
    if name is None:
        raise DecodeError(f'no kind "{kind}" is registered for version "{api_version}"')
    return name


def _decode(data: bytes) -> dict[str, Any]:
    parts = _texts_of(data, len(MAGIC), len(data))
    types = _texts_of(data, *parts.get(1, (0, 0)))
    version, kind = (read_text(data, *types.get(number, (0, 0))) for number in (1, 2))
    encoding, content = (read_text(data, *parts.get(number, (0, 0))) for number in (3, 4))
    head = {name: text for name, text in (("kind", kind), ("apiVersion", version)) if text}
    if encoding:
        raise Unsupported(f"content encoding {encoding!r} is not supported in protobuf bodies")
    start, stop = parts.get(2, (0, 0))
    # An envelope may also carry JSON: its contentType tells.
    if content in ("", CONTENT_TYPE):
        return {**head, **_completed(version, kind, reader_of(_message(version, kind))(data, start, stop))}
    if content != "application/json":
        raise Unsupported(f"content type {content!r} is not supported in protobuf bodies")
    document = parse_json(read_text(data, start, stop))
    if not isinstance(document, dict):
        raise DecodeError("expected an object in the protobuf envelope")
    return {**head, **document}


def _texts_of(data: bytes, at: int, end: int) -> dict[int, tuple[int, int]]:
    """The spans of the fields of an envelope, all of which have a length."""
    return {number: span for number, span in fields_of(data, at, end).items() if not isinstance(span, int)}


def _completed(version: str, kind: str, document: dict[str, Any]) -> dict[str, Any]:
    """Items of a list have no types on the wire; those of partial metadata have them in JSON, or are null."""
    if kind == "PartialObjectMetadataList":
        types = {"kind": "PartialObjectMetadata", "apiVersion": version}
        document["items"] = [{**types, **item} for item in document["items"]] or None
    return document
