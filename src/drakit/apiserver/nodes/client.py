"""Ask a node's agent: one TLS connection for each request, with the server's own certificate.

In:  an address, a path and headers.
Out: the answer with its head read; its body, or the connection itself after an upgrade, is left to the caller.

NodeUnreachable    no answer came; the text names the node, its address and what went wrong
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import cached_property
from pathlib import Path
from typing import Any

import httptools
import msgspec

from drakit.apiserver.auth.certificates import Pair
from drakit.apiserver.nodes.location import NodeAddress
from drakit.base.errors import Unavailable, UsageError

ANSWER_SECONDS = 15.0
_PIECE = 64 * 1024
_MOST_HEAD_BYTES = 64 * 1024
_MOST_TEXT_BYTES = 10_000

Deadline = Callable[[float], AbstractAsyncContextManager[Any]]


class NodeUnreachable(Unavailable):
    """The node's agent did not answer."""


class NodeFiles(msgspec.Struct, frozen=True):
    """The CA of the nodes, and the server's own certificate. Without a CA, those that the machine trusts."""

    authority: Path | None = None
    certificate: Pair | None = None


class NodeClient:
    def __init__(self, files: NodeFiles, *, deadline: Deadline = asyncio.timeout) -> None:
        """Raise UsageError for files that are of no use."""
        self._files = files
        self._deadline = deadline
        self._verifying = self._context()

    async def ask(
        self,
        address: NodeAddress,
        method: str,
        target: str,
        headers: Mapping[str, str],
        *,
        verify: bool = True,
        tls: bool = True,
        body: bytes = b"",
    ) -> NodeResponse:
        """The caller closes the answer. Raise NodeUnreachable.

        Without `tls` the connection is plain: so are most ports of pods.
        """
        context = (self._verifying if verify else self._trusting) if tls else None
        about = f'node "{address.node}" at {address}'
        try:
            async with self._deadline(ANSWER_SECONDS):
                return await _exchange(address, context, _head(address, method, target, headers, body) + body)
        except TimeoutError:
            why = f"no answer within {ANSWER_SECONDS:.0f} s"
        except ssl.SSLCertVerificationError as error:
            why = f"its certificate is not trusted: {error.verify_message}"
        except ssl.SSLError as error:
            why = f"tls: {error.reason or error}"
        except OSError as error:
            why = error.strerror or str(error) or "the connection broke"
        except httptools.HttpParserError as error:
            why = f"malformed HTTP response: {error}"
        raise NodeUnreachable(f"error dialing backend: {about}: {why}")

    @cached_property
    def _trusting(self) -> ssl.SSLContext:
        """A TLS context that does not verify the node's certificate, for `insecureSkipTLSVerifyBackend`."""
        context = self._context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context

    def _context(self) -> ssl.SSLContext:
        authority, pair = self._files.authority, self._files.certificate
        try:
            context = ssl.create_default_context(cafile=authority)
            context.set_alpn_protocols(["http/1.1"])
            if pair is not None:
                context.load_cert_chain(pair.certificate, pair.key)
        except OSError as error:
            own = (pair.certificate, pair.key) if pair is not None else ()
            files = ", ".join(str(file) for file in (authority, *own) if file is not None)
            raise UsageError(f"nodes cannot be reached with {files}: {error}") from None
        return context


class NodeResponse:
    """A head, and what follows it. Invariant: once closed, nothing of the connection is left."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.code = 0
        self.headers: dict[str, str] = {}
        self.early = b""
        """What came right behind the head of an upgrade: it belongs to the new protocol."""
        self._parser = httptools.HttpResponseParser(self)
        self._pieces: deque[bytes] = deque()
        self._headed = False
        self._complete = False

    async def read_head(self) -> None:
        size = 0
        while not self._headed:
            data = await self.reader.read(_PIECE)
            size += len(data)
            if not data or size > _MOST_HEAD_BYTES + _PIECE:
                raise ConnectionResetError(
                    "the connection ended before the answer" if not data else "its head is endless"
                )
            self._feed(data)
        self.code = self._parser.get_status_code()

    async def read(self) -> bytes:
        """The next piece of the body; empty at its end. Raise OSError when it breaks off."""
        while not self._pieces:
            if self._complete:
                return b""
            data = await self.reader.read(_PIECE)
            if not data:
                if self._delimited:
                    raise ConnectionResetError("the node hung up in the middle of its answer")
                return b""
            self._feed(data)
        return self._pieces.popleft()

    async def text(self) -> str:
        """The body of an answer that is no success, cut when it is long."""
        parts: list[bytes] = []
        while sum(map(len, parts)) < _MOST_TEXT_BYTES and (piece := await self.read()):
            parts.append(piece)
        return b"".join(parts)[:_MOST_TEXT_BYTES].decode(errors="replace").strip()

    def close(self) -> None:
        self.writer.transport.abort()

    def _feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self.early = data[upgrade.args[0] :]

    @property
    def _delimited(self) -> bool:
        """Whether the head says where the body ends. Otherwise it ends with the connection."""
        return "content-length" in self.headers or "transfer-encoding" in self.headers

    # What the parser tells

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._headed = True

    def on_body(self, piece: bytes) -> None:
        self._pieces.append(piece)

    def on_message_complete(self) -> None:
        self._complete = True


async def _exchange(address: NodeAddress, context: ssl.SSLContext | None, head: bytes) -> NodeResponse:
    reader, writer = await asyncio.open_connection(
        address.host, address.port, ssl=context, server_hostname=address.host if context else None
    )
    # A node that is gone says nothing: the kernel finds out.
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    answer = NodeResponse(reader, writer)
    try:
        writer.write(head)
        await writer.drain()
        await answer.read_head()
    except BaseException:
        answer.close()
        raise
    return answer


def _head(address: NodeAddress, method: str, target: str, headers: Mapping[str, str], body: bytes) -> bytes:
    given = {"host": str(address), "user-agent": "drakit", **headers}
    if method == "POST" or body:
        given["content-length"] = str(len(body))
    for name, value in given.items():
        if not (name + value).isprintable():
            raise UsageError(f"header {name!r} has characters that no header has")
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", errors="replace")
