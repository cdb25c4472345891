"""Compress long responses to clients on other machines.

In:  the bytes of a response, what the client accepts, and the address of the client.
Out: the bytes, compressed when that pays.

Compressing a long list takes more time than making it. For a client on this machine, the usual one, that is a loss. For
others a response of a certain size arrives sooner; Kubernetes has the same limit.
"""

from __future__ import annotations

import asyncio
import gzip
import ipaddress
from collections.abc import Mapping

SMALLEST = 128 * 1024
_FASTEST = 1


def possible(accept_encoding: str, peer: str | None) -> bool:
    """Whether a response for this peer may be compressed. None is a peer on a Unix socket."""
    return peer is not None and not _is_here(peer) and _accepts_gzip(accept_encoding)


def wanted(size: int) -> bool:
    """Whether a response of this size is worth it."""
    return size > SMALLEST


async def compress(body: bytes) -> bytes:
    """Compress in a thread, so that other requests are answered meanwhile."""
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
