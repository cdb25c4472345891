"""Long answers to clients far away, in fewer bytes.

In:  an answer's bytes, what the client accepts, and where it is.
Out: the same, compressed, when that is worth it.

Compressing a long list takes longer than making it: to a client on this machine, which is the usual one, it would only
be slower. To others an answer of a certain size is sent faster so, as Kubernetes does.
"""

from __future__ import annotations

import asyncio
import gzip
import ipaddress
from collections.abc import Mapping

SMALLEST = 128 * 1024
_FASTEST = 1


def wanted(accept_encoding: str, peer: str | None, size: int) -> bool:
    """Whether an answer of this size to this peer should be compressed; no peer is one on a Unix socket."""
    return size > SMALLEST and peer is not None and not _is_here(peer) and _accepts_gzip(accept_encoding)


async def compress(body: bytes) -> bytes:
    """In a thread: others are answered meanwhile."""
    return await asyncio.to_thread(gzip.compress, body, _FASTEST, mtime=0)


def _is_here(peer: str) -> bool:
    try:
        return ipaddress.ip_address(peer.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _accepts_gzip(text: str) -> bool:
    for entry in text.split(","):
        name, *parameters = (part.strip().lower() for part in entry.split(";"))
        if name == "gzip":
            return _parameters(parameters).get("q", "1") not in ("0", "0.0", "0.00", "0.000")
    return False


def _parameters(parts: list[str]) -> Mapping[str, str]:
    return dict(part.partition("=")[::2] for part in parts)
