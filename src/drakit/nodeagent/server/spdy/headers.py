"""Header blocks of SPDY/3: name and value pairs, compressed with one zlib stream per direction and connection.

In:  a block as it stands in a frame.
Out: a mapping with names in lower case, and back.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping

_WORDS = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow "
    "authorization cache-control connection content-base content-encoding content-language content-length "
    "content-location content-md5 content-range content-type date etag expect expires from host if-match "
    "if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status"
)
_TITLES = ("200 OK", "version", "HTTP/1.1", "url", "public", "set-cookie", "keep-alive", "origin")
_TAIL = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden"
    "404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
    "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
DICTIONARY = (
    b"".join(struct.pack(">I", len(word)) + word.encode() for word in (*_WORDS.split(), *_TITLES)) + _TAIL.encode()
)
"""What both sides prime their compression with; the specification fixes every byte."""

MOST_HEADER_BYTES = 64 * 1024


class HeaderError(ValueError):
    """A block that cannot be read. The connection is of no use after it: the compression has lost its place."""


class HeaderPacker:
    """One direction, outward. Blocks must be sent in the order in which they were packed."""

    def __init__(self) -> None:
        self._zlib = zlib.compressobj(zdict=DICTIONARY)

    def pack(self, headers: Mapping[str, str]) -> bytes:
        parts = [struct.pack(">I", len(headers))]
        for name, value in headers.items():
            for text in (name.lower().encode(), value.encode()):
                parts += [struct.pack(">I", len(text)), text]
        # Flushed, not finished: the next block goes on with the same dictionary.
        return self._zlib.compress(b"".join(parts)) + self._zlib.flush(zlib.Z_SYNC_FLUSH)


class HeaderUnpacker:
    """One direction, inward."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(zdict=DICTIONARY)

    def unpack(self, block: bytes) -> dict[str, str]:
        """Raise HeaderError, also for a small block that would become a large one."""
        try:
            plain = self._zlib.decompress(block, MOST_HEADER_BYTES)
        except zlib.error as error:
            raise HeaderError(f"headers cannot be decompressed: {error}") from None
        if self._zlib.unconsumed_tail:
            raise HeaderError(f"headers of more than {MOST_HEADER_BYTES} bytes")
        return _parse(plain)


def _parse(plain: bytes) -> dict[str, str]:
    try:
        (count,) = struct.unpack_from(">I", plain)
        headers: dict[str, str] = {}
        offset = 4
        for _ in range(count):
            name, offset = _text(plain, offset)
            headers[name.lower()], offset = _text(plain, offset)
    except (struct.error, UnicodeDecodeError) as error:
        raise HeaderError(f"headers cannot be read: {error}") from None
    return headers


def _text(plain: bytes, offset: int) -> tuple[str, int]:
    (length,) = struct.unpack_from(">I", plain, offset)
    end = offset + 4 + length
    if end > len(plain):
        raise HeaderError("headers end in the middle of a word")
    return plain[offset + 4 : end].decode(), end
