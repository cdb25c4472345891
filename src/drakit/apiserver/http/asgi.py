"""The server over HTTP: an ASGI application that parses requests and writes responses.

In:  ASGI messages.
Out: the handler's responses, in bytes.

A client that stalls or goes away costs nothing: bodies and writes have deadlines, a watch ends with its connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from drakit.api.exchange import (
    Account,
    EventStream,
    Handler,
    OpenBody,
    Parted,
    Raw,
    Request,
    Response,
    StatusContent,
    Tunnel,
)
from drakit.apiserver.failures import Disconnected, bad_request, internal, request_timeout, too_large
from drakit.apiserver.http import compression as compressing
from drakit.apiserver.http.deadlines import Deadlines
from drakit.apiserver.requests.bodies import MAX_BODY

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]
Turn = Callable[[], Awaitable[None]]
WriteAnswer = Callable[[int, Headers, bytes], bool]

REQUEST_SECONDS = 60.0
BODY_SECONDS = 30.0
WRITE_SECONDS = 30.0
CLOSE_SECONDS = 5.0
CERTIFICATE = "peer_certificate"
LAST = "last"
"""In the state of a connection: a function that closes it after this answer, without reading the rest of the body."""
PATIENT = "patient"
"""In the state of a connection: a function that lets the client take its time with this answer."""
IDENTIFIED = "identified"
"""In the state of a connection: a function that is told who sends the request."""
REFUSAL = "refusal"
"""In the state of a connection: the Status that answers a request whose head has too much in it."""
TURN = "turn"
"""In the state of a connection: a function that waits for the client's turn on the loop."""
TAKE_OVER = "take_over"
"""In the state of a connection: a function that hands it over to another protocol, as a reader and a writer."""
WRITE_ANSWER = "write_answer"
"""In the state of a connection: a function that writes a whole answer, unless the client does not read just now."""
_NO_STATE: Mapping[str, Any] = {}
_REST = 64 * 1024
"""Bytes of a body that are read, and thrown away, for the sake of a connection that can be used again."""
_PART = 256 * 1024
"""Bytes of a body that are sent at a time."""
_MANY_PARAMETERS = 1000
_WARNINGS = 4096
_CUT_WARNING = 256
"""Characters of all warnings of a response; and of one, when there are more."""
_COMPRESSED_TOGETHER = 2
_GZIPPED = (("content-encoding", "gzip"), ("vary", "Accept-Encoding"))
_NO_CACHE = (b"cache-control", b"no-cache, private")


class Application:
    """The ASGI application of one handler."""

    def __init__(self, server: Handler) -> None:
        self._server = server
        self._draining = asyncio.Event()
        self._compressing = asyncio.Semaphore(_COMPRESSED_TOGETHER)
        self._requests = Deadlines()
        self._bodies = Deadlines()

    def drain(self) -> None:
        """End all watches: the listener is about to stop and would wait for them."""
        self._draining.set()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        state = scope.get("state") or _NO_STATE
        body = _Body(scope["headers"], receive, state, self._bodies)
        request = _request(scope, state, body)
        try:
            response = await self._handle(request)
        except Disconnected:
            return
        if response.content.whole:
            body.leave()
            await self._answer(response, request, state, send)
        elif isinstance(response.content, EventStream):
            await self._stream(response, response.content, receive, send)
        elif isinstance(response.content, OpenBody):
            await self._open_body(response, response.content, request, state, receive, send)
        elif isinstance(response.content, Tunnel):
            await self._tunnel(response, response.content, state, send)
        else:
            body.leave()
            await self._answer(response, request, state, send)

    async def _answer(self, response: Response, request: Request, state: Mapping[str, Any], send: Send) -> None:
        head = request.method == "HEAD"
        if request.headers.get("accept-encoding"):
            response = await _coded(response, request, self._compressing)
        write = state.get(WRITE_ANSWER)
        if write is not None and not head and _write_at_once(response, write):
            return
        await _send(response, send, head=head, turn=state.get(TURN, _next_turn))

    async def _handle(self, request: Request) -> Response:
        try:
            return await self._requests.within(REQUEST_SECONDS, self._server.handle(request))
        except TimeoutError:
            answer = request_timeout().status
            return Response(code=answer.code, content=StatusContent(answer))

    async def _stream(
        self,
        response: Response,
        stream: EventStream | OpenBody,
        receive: Receive,
        send: Send,
        *,
        patience: float | None = WRITE_SECONDS,
    ) -> None:
        """Send what comes until it ends, or the client goes, or it does not read for longer than our patience."""
        tasks = [
            asyncio.ensure_future(_write(response, stream, send, patience)),
            asyncio.ensure_future(_left(receive)),
            asyncio.ensure_future(self._draining.wait()),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await stream.close()
        if self._draining.is_set():
            # The end of the body: without it the connection would count as broken, and not be closed in peace.
            await send({"type": "http.response.body", "body": b""})

    async def _open_body(
        self,
        response: Response,
        body: OpenBody,
        request: Request,
        state: Mapping[str, Any],
        receive: Receive,
        send: Send,
    ) -> None:
        """Stream a body to a client that may read slowly: what it does not read is not fetched either."""
        if request.method == "HEAD":
            await body.close()
            await _send(msgspec.structs.replace(response, content=Raw(b"")), send, head=True)
            return
        if (patient := state.get(PATIENT)) is not None:
            patient()
        await self._stream(response, body, receive, send, patience=None)

    async def _tunnel(self, response: Response, tunnel: Tunnel, state: Mapping[str, Any], send: Send) -> None:
        """Join the client's connection with the other end's, until either of them, or this server, ends."""
        take_over = state.get(TAKE_OVER)
        if take_over is None:
            await tunnel.close()
            answer = internal("this connection cannot be upgraded").status
            await _send(Response(code=answer.code, content=StatusContent(answer)), send)
            return
        try:
            reader, writer = take_over()
        except ConnectionError:
            await tunnel.close()
            return
        writer.write(_switching(response))
        tasks = [asyncio.ensure_future(tunnel.join(reader, writer)), asyncio.ensure_future(self._draining.wait())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await tunnel.close()
            await _close(writer)


def _joined(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Join headers that come several times by commas, as HTTP says.

    Impersonation headers are joined by line ends instead: a group's name may contain a comma, never a line end.
    """
    headers: dict[str, str] = {}
    repeated: dict[str, list[str]] = {}
    for name, value in raw:
        key, text = name.decode("latin-1"), value.decode("latin-1")
        if key in headers:
            repeated.setdefault(key, [headers[key]]).append(text)
        else:
            headers[key] = text
    for key, texts in repeated.items():
        headers[key] = ("\n" if key.startswith("impersonate-") else ", ").join(texts)
    return headers


class _Body:
    """The body of a request. A client that waits to be told to go on, or sends a long one, may be left with it."""

    def __init__(
        self,
        raw: Iterable[tuple[bytes, bytes]],
        receive: Receive,
        state: Mapping[str, Any],
        deadlines: Deadlines,
    ) -> None:
        self.headers = _joined(raw)
        self._receive = receive
        self._state = state
        self._deadlines = deadlines
        self._left = length_of(self.headers)

    async def read(self, account: Account) -> bytes:
        """All of it. Raise 413 when it is too large, 504 when it does not come in time."""
        # Refused before it is sent. A body without a length is counted below.
        if self._left > MAX_BODY and self._left != UNKNOWN:
            raise too_large(MAX_BODY)
        try:
            parts = await self._deadlines.within(BODY_SECONDS, self._parts(account))
        except TimeoutError:
            raise request_timeout() from None
        self._left = 0
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _parts(self, account: Account) -> list[bytes]:
        parts: list[bytes] = []
        size, more = 0, True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Disconnected
            part = message.get("body", b"")
            size += len(part)
            if size > MAX_BODY:
                raise too_large(MAX_BODY)
            account(len(part))
            parts.append(part)
            more = bool(message.get("more_body"))
        return parts

    def leave(self) -> None:
        """No more of it will be read. A long rest costs the client its connection."""
        if self._left > _REST and (last := self._state.get(LAST)) is not None:
            last()


UNKNOWN = 1 << 62


def length_of(headers: Mapping[str, str]) -> int:
    """The bytes of a body, as its head tells: none, a number, or UNKNOWN."""
    if "transfer-encoding" in headers:
        return UNKNOWN
    length = headers.get("content-length", "")
    return int(length) if length.isdecimal() else 0


def _request(scope: Message, state: Mapping[str, Any], body: _Body) -> Request:
    method = scope["method"].upper()
    query: list[tuple[str, str]] = []
    refusal = state.get(REFUSAL)
    if scope["query_string"]:
        try:
            query = parse_qsl(
                scope["query_string"].decode("latin-1"), keep_blank_values=True, max_num_fields=_MANY_PARAMETERS
            )
        except ValueError as error:
            refusal = bad_request(f"the query cannot be read: {error}").status
    return Request(
        method=method,
        path=scope["path"],
        query=tuple(query),
        headers=body.headers,
        # A body of a GET is not read: no verb uses it, and it would only delay the response.
        read_body=body.read if method not in ("GET", "HEAD") else None,
        certificate=state.get(CERTIFICATE),
        source=(scope.get("client") or ("",))[0],
        refusal=refusal,
        identified=state.get(IDENTIFIED),
    )


def _headers(response: Response, *, length: int | None) -> Headers:
    # 304 has no content: caches would take its type and length for those of the content that they have.
    headers: Headers = [] if response.code == 304 else [(b"content-type", response.content_type.encode())]
    if response.headers:
        headers += [(name.encode(), value.encode()) for name, value in response.headers]
    if not response.headers or not any(name == "cache-control" for name, _ in response.headers):
        headers.append(_NO_CACHE)
    if response.warnings:
        headers += [(b"warning", warning_header(text)) for text in cut_warnings(response.warnings)]
    if length is not None and response.code != 304:
        headers.append((b"content-length", str(length).encode()))
    return headers


def cut_warnings(texts: Sequence[str]) -> list[str]:
    """Different warnings, as many as fit: as Kubernetes does, long ones are cut when all together are too long."""
    different = list(dict.fromkeys(filter(None, texts)))
    if sum(map(len, different)) <= _WARNINGS:
        return different
    kept: list[str] = []
    size = 0
    for text in different:
        if size >= _WARNINGS:
            break
        kept.append(text[:_CUT_WARNING])
        size += len(kept[-1])
    return kept


def warning_header(text: str) -> bytes:
    r"""`299 - "text"`, with `\` and `"` escaped; a header is one line of printable text."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    line = "".join(char if char.isprintable() else " " for char in escaped)
    return f'299 - "{line}"'.encode()


async def _coded(response: Response, request: Request, slots: asyncio.Semaphore) -> Response:
    """The response, compressed if the client accepts that and is on another machine."""
    accepted = request.headers.get("accept-encoding", "")
    if response.code == 304 or not compressing.possible(accepted, request.source or None):
        return response
    # A few at a time: the whole body is in memory meanwhile.
    async with slots:
        body = response.content.encode()
        if not compressing.wanted(len(body)):
            return msgspec.structs.replace(response, content=Raw(body))
        return msgspec.structs.replace(
            response, content=Raw(await compressing.compress(body)), headers=(*response.headers, *_GZIPPED)
        )


def _write_at_once(response: Response, write: WriteAnswer) -> bool:
    """Write a short answer with nothing special in its head. Whether that could be done."""
    if not response.content.whole or response.headers or response.code == 304:
        return False
    body = response.content.encode()
    return len(body) <= _PART and write(response.code, _headers(response, length=len(body)), body)


async def _next_turn() -> None:
    await asyncio.sleep(0)


async def _send(response: Response, send: Send, *, head: bool = False, turn: Turn = _next_turn) -> None:
    if isinstance(response.content, Parted) and not head and response.code != 304:
        await _send_parts(response, response.content, send, turn)
        return
    body = response.content.encode()
    start = {"type": "http.response.start", "status": response.code, "headers": _headers(response, length=len(body))}
    try:
        async with asyncio.timeout(WRITE_SECONDS):
            await send(start)
            if len(body) > _PART and not head and response.code != 304:
                await _send_pieces(body, send, turn)
            else:
                await send({"type": "http.response.body", "body": b"" if head or response.code == 304 else body})
    except (TimeoutError, OSError):
        return


async def _send_pieces(body: bytes, send: Send, turn: Turn) -> None:
    """A long body in pieces: others have their turn between them."""
    for at in range(0, len(body), _PART):
        await send({"type": "http.response.body", "body": body[at : at + _PART], "more_body": at + _PART < len(body)})
        await turn()


async def _send_parts(response: Response, content: Parted, send: Send, turn: Turn) -> None:
    """A part is made when the one before is on its way: a client that does not read holds one part, not the whole."""
    length, parts = content.parts()
    start = {"type": "http.response.start", "status": response.code, "headers": _headers(response, length=length)}
    try:
        async with asyncio.timeout(WRITE_SECONDS):
            await send(start)
        for part in parts:
            async with asyncio.timeout(WRITE_SECONDS):
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await turn()
        await send({"type": "http.response.body", "body": b""})
    except (TimeoutError, OSError):
        return


async def _write(response: Response, stream: EventStream | OpenBody, send: Send, patience: float | None) -> None:
    start = {"type": "http.response.start", "status": response.code, "headers": _headers(response, length=None)}
    try:
        async with asyncio.timeout(WRITE_SECONDS):
            await send(start)
            # An empty piece sends the head at once: a client waits for it before it counts the watch as open.
            await send({"type": "http.response.body", "body": b"", "more_body": True})
        async for chunk in stream.lines() if isinstance(stream, EventStream) else stream.pieces():
            async with asyncio.timeout(patience):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    except (TimeoutError, OSError):
        return


def _switching(response: Response) -> bytes:
    lines = ["HTTP/1.1 101 Switching Protocols", *(f"{name}: {value}" for name, value in response.headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


async def _close(writer: asyncio.StreamWriter) -> None:
    """Close the connection. The client has a moment to read what was sent, then it is aborted."""
    writer.close()
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await writer.wait_closed()
    except (TimeoutError, OSError):
        writer.transport.abort()


async def _left(receive: Receive) -> None:
    """Return when the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass
