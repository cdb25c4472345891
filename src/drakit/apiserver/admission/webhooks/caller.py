"""Post a review to a webhook and read the response.

In:  the address of the webhook, the CA to trust, a body, a timeout.
Out: the body of a 2xx response. WebhookCallFailed for anything else: no connection, a timeout, a response that is cut
     off or too long, another code.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ssl
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import httptools

from drakit.apiserver.admission.criteria.registrations import ClientConfig, ServiceReference

MAX_ANSWER = 8 * 1024 * 1024
_PIECE = 64 * 1024

ServiceResolver = Callable[[ServiceReference], Awaitable[tuple[str, int]]]
"""Host and port behind a service; raises LookupError when there is nothing behind it."""
Deadline = Callable[[float], AbstractAsyncContextManager[Any]]


class WebhookCallFailed(Exception):
    """The webhook gave no usable response."""


class Endpoint:
    """Where to connect, the name that the certificate must have, and the URL."""

    def __init__(self, url: str, host: str, port: int, server_name: str, context: ssl.SSLContext | None) -> None:
        self.url = url
        self.host = host
        self.port = port
        self.server_name = server_name
        self.context = context


class Caller:
    """Calls webhooks, each time over a new connection: calls are rare, and a kept connection may be dead."""

    def __init__(
        self,
        *,
        resolve: ServiceResolver | None = None,
        deadline: Deadline = asyncio.timeout,
        max_answer: int = MAX_ANSWER,
    ) -> None:
        self._resolve = resolve
        self._deadline = deadline
        self._max_answer = max_answer

    async def post(self, config: ClientConfig, body: bytes, seconds: int) -> bytes:
        endpoint = await self._endpoint(config, seconds)
        try:
            async with self._deadline(seconds):
                return await self._exchange(endpoint, body)
        except TimeoutError:
            why = "context deadline exceeded"
        except ssl.SSLError as error:
            why = f"tls: {error.reason or error}"
        except OSError as error:
            why = f"dial tcp {endpoint.host}:{endpoint.port}: {error.strerror or error}"
        except httptools.HttpParserError as error:
            why = f"malformed HTTP response: {error}"
        raise WebhookCallFailed(f'Post "{endpoint.url}": {why}')

    async def _endpoint(self, config: ClientConfig, seconds: int) -> Endpoint:
        query = f"?timeout={seconds}s"
        if config.service is not None:
            service = config.service
            name = f"{service.name}.{service.namespace}.svc"
            url = f"https://{name}:{service.port}/{service.path.removeprefix('/')}{query}"
            host, port = await self._reach(service, url)
            return Endpoint(url, host, port, name, _trust(config.ca_bundle))
        parts = urlsplit(config.url)
        host, secure = parts.hostname or "", parts.scheme == "https"
        port = parts.port or (443 if secure else 80)
        return Endpoint(config.url + query, host, port, host, _trust(config.ca_bundle) if secure else None)

    async def _reach(self, service: ServiceReference, url: str) -> tuple[str, int]:
        if self._resolve is None:
            why = "this server is not part of a cluster network and reaches no services; use clientConfig.url"
            raise WebhookCallFailed(f'Post "{url}": service "{service.namespace}/{service.name}": {why}')
        try:
            return await self._resolve(service)
        except LookupError as error:
            raise WebhookCallFailed(f'Post "{url}": service "{service.namespace}/{service.name}": {error}') from None

    async def _exchange(self, endpoint: Endpoint, body: bytes) -> bytes:
        name = endpoint.server_name if endpoint.context else None
        reader, writer = await asyncio.open_connection(
            endpoint.host, endpoint.port, ssl=endpoint.context, server_hostname=name
        )
        try:
            writer.write(_head(endpoint, len(body)) + body)
            await writer.drain()
            return await self._answer(endpoint, reader)
        finally:
            # Not `close`: a webhook that does not finish the TLS shutdown would keep the connection.
            writer.transport.abort()

    async def _answer(self, endpoint: Endpoint, reader: asyncio.StreamReader) -> bytes:
        answer, left = _HttpAnswer(), self._max_answer
        parser = httptools.HttpResponseParser(answer)
        while not answer.complete:
            piece = await reader.read(_PIECE)
            if not piece and not answer.ends_with_connection:
                raise WebhookCallFailed(f'Post "{endpoint.url}": unexpected EOF')
            if not piece:
                break
            # Counted with the head: a response without end must not fill the memory.
            left -= len(piece)
            if left < 0:
                raise WebhookCallFailed(f'Post "{endpoint.url}": the answer is longer than {self._max_answer} bytes')
            parser.feed_data(piece)
        code = parser.get_status_code()
        if not 200 <= code < 300:
            raise WebhookCallFailed(f'Post "{endpoint.url}": the server answered with code {code}')
        return b"".join(answer.pieces)


class _HttpAnswer:
    """Collects what the HTTP parser reports."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.complete = False
        self._headed = False
        self._delimited = False

    @property
    def ends_with_connection(self) -> bool:
        """Whether only the end of the connection ends the body."""
        return self._headed and not self._delimited

    def on_header(self, name: bytes, value: bytes) -> None:  # noqa: ARG002
        if name.lower() in (b"content-length", b"transfer-encoding"):
            self._delimited = True

    def on_headers_complete(self) -> None:
        self._headed = True

    def on_body(self, piece: bytes) -> None:
        self.pieces.append(piece)

    def on_message_complete(self) -> None:
        self.complete = True


def _head(endpoint: Endpoint, length: int) -> bytes:
    parts = urlsplit(endpoint.url)
    lines = (
        f"POST {parts.path or '/'}?{parts.query} HTTP/1.1",
        f"Host: {parts.netloc}",
        "User-Agent: drakit",
        "Accept: application/json",
        "Content-Type: application/json",
        f"Content-Length: {length}",
        "Connection: close",
    )
    return "\r\n".join((*lines, "", "")).encode()


@lru_cache(maxsize=128)
def _trust(ca_bundle: str) -> ssl.SSLContext:
    """The TLS context of a CA bundle, made once. Without a bundle the CAs of the machine are trusted."""
    if not ca_bundle:
        return ssl.create_default_context()
    try:
        return ssl.create_default_context(cadata=base64.b64decode(ca_bundle).decode())
    except (ssl.SSLError, binascii.Error, UnicodeDecodeError, ValueError) as error:
        raise WebhookCallFailed(f"unable to load root certificates: {error}") from None
