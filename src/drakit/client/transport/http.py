"""Requests over sockets: TCP or Unix, plain or TLS, with connections that stay open.

In:  requests with bytes.
Out: responses with bytes; a watch as a stream. No answer raises ConnectionFailed or RequestTimeout.

Nothing is sent twice here, but for what was not done for sure: a request that the server refused to look at (401) when
fresh credentials may help, one that crossed the end of its connection (408), and one that never reached its server.
That one goes to the next server where a cluster has several. So does a read whose server does not reach its store.
"""

from __future__ import annotations

import asyncio
import logging
import re
import ssl
from collections.abc import AsyncIterator
from urllib.parse import quote, urlencode

import aiohttp
import yarl
from multidict import CIMultiDict

from drakit.api.exchange import Raw, Request, Response
from drakit.base.errors import UsageError
from drakit.client.access.endpoint import Access, Certificate
from drakit.client.failures import ConnectionFailed, RequestTimeout
from drakit.client.transport.streams import LineStream, ReceivedBody
from drakit.client.verbosity import V

log = logging.getLogger("drakit.client")

PAGE_SIZE = 500
KEEP_ALIVE_SECONDS = 60.0  # servers hang up on idle connections a little later than this
IDLE_WATCH_SECONDS = 180.0  # with bookmarks, a server has something to say every minute
_WARNING = re.compile(r'\d{3} \S+ "((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")
_TURNED_AWAY = 408
_PATH = "/:@!$&'()*+,;=-._~"


class Http:
    """A pool of connections to one cluster. Invariant: all of them were made with the certificate in `_certificate`."""

    in_process = False
    page_size = PAGE_SIZE

    def __init__(self, access: Access, *, timeout: float = 30.0, connections: int = 100) -> None:
        """`timeout` is for a whole request and its answer, in seconds; watches have none."""
        self.access = access
        self._connections = connections
        self._timeout = aiohttp.ClientTimeout(total=timeout, sock_connect=10.0)
        self._watch_timeout = aiohttp.ClientTimeout(total=None, sock_connect=10.0, sock_read=IDLE_WATCH_SECONDS)
        self._open_timeout = aiohttp.ClientTimeout(total=None, sock_connect=10.0)  # a log may be silent for days
        self._session: aiohttp.ClientSession | None = None
        self._certificate: Certificate | None = None
        self._unix = access.server.removeprefix("unix://") if access.server.startswith("unix://") else ""
        named = ("http://localhost",) if self._unix else (access.server, *access.others)
        self._bases = tuple(each.rstrip("/") for each in named)
        self._turn = 0
        self._own = tuple(access.headers.items())
        self._watches: set[aiohttp.ClientResponse] = set()
        self._closed = False

    async def handle(self, request: Request) -> Response:
        response = await self._somewhere(request)
        if response.code == 401 and self.access.credentials.refused():
            response = await self._once(request)
        return response

    async def _somewhere(self, request: Request) -> Response:
        """The answer of the server in use, or of the next one that can be reached and reaches its store."""
        for _ in self._bases[1:]:
            try:
                response = await self._taken(request)
            except ConnectionFailed as error:
                if error.sent:
                    raise
                continue
            if not _is_cut_off(response) or request.method not in ("GET", "HEAD"):
                return response
            await _drop(response)
        return await self._taken(request)

    async def _taken(self, request: Request) -> Response:
        """The answer to a request that its server took. One that turns it away is stopping: another may be there.

        After a server that fails, whatever comes next goes to another one.
        """
        for _ in range(self._connections):  # each kept connection may have been turned away
            base = self._base
            try:
                response = await self._once(request)
            except (ConnectionFailed, RequestTimeout):
                self._turn_from(base)
                raise
            if response.code == _TURNED_AWAY or _is_cut_off(response):
                self._turn_from(base)
            if response.code != _TURNED_AWAY:
                break
        return response

    def _turn_from(self, base: str) -> None:
        """Go to the next server. Requests that fail together on one leave it once."""
        if base == self._base:
            self._turn += 1

    @property
    def _base(self) -> str:
        return self._bases[self._turn % len(self._bases)]

    async def close(self) -> None:
        self._closed = True
        await self.disconnect()

    async def disconnect(self) -> None:
        """Give up all connections, and with them all watches. The next request opens new ones."""
        session, self._session = self._session, None
        await self._leave(session)

    async def _leave(self, session: aiohttp.ClientSession | None) -> None:
        for answer in list(self._watches):
            self._end(answer)
        if session is not None:
            await session.close()
            await asyncio.sleep(0)  # sockets are closed on the loop's next turn

    def _end(self, answer: aiohttp.ClientResponse) -> None:
        """Close the connection of a watch and wake its reader, which aiohttp would leave waiting for ever."""
        self._watches.discard(answer)
        answer.content.set_exception(aiohttp.ClientConnectionError("the client has closed the watch"))
        transport = answer.connection.transport if answer.connection is not None else None
        answer.close()
        if transport is not None:
            transport.abort()  # the goodbyes of TLS would outlive the loop, with nobody to wait for them

    async def _once(self, request: Request) -> Response:
        session = await self._connected()
        watch = ("watch", "true") in request.query
        timeout = self._open_timeout if request.open_body else self._watch_timeout if watch else self._timeout
        try:
            answer = await session.request(
                request.method,
                self._url(request),
                data=request.body or None,
                headers=await self._headers(request),
                timeout=timeout,
                allow_redirects=False,
                proxy=self.access.proxy or None,
                server_hostname=self.access.trust.server_name or None,
            )
        except Exception as error:
            raise _failed(error, request) from error
        # Remembered from here on, so that `disconnect` can end it; any other answer is short and read at once.
        if watch and answer.status == 200:
            self._watches.add(answer)
            return _response(answer, LineStream(_chunks(answer, request), lambda: self._end(answer)))
        if request.open_body and answer.status == 200:
            self._watches.add(answer)
            return _response(answer, ReceivedBody(_chunks(answer, request), lambda: self._end(answer)))
        try:
            return _response(answer, Raw(await answer.read()))
        except Exception as error:
            raise _failed(error, request) from error
        finally:
            answer.release()

    async def _connected(self) -> aiohttp.ClientSession:
        """The session; a new one when the client's certificate has changed and goes with its key."""
        certificate = await self.access.credentials.certificate()
        if self._closed:
            raise ConnectionFailed("the client is closed", sent=False)
        if self._session is not None and certificate is self._certificate:
            return self._session
        try:
            fresh = self._open(certificate)
        except UsageError as error:
            if self._session is None:
                raise
            log.log(V[2], "the client's certificate is not renewed yet: %s", error)
            return self._session
        stale, self._session, self._certificate = self._session, fresh, certificate
        await self._leave(stale)
        return fresh

    def _open(self, certificate: Certificate | None) -> aiohttp.ClientSession:
        connector: aiohttp.BaseConnector
        if self._unix:
            connector = aiohttp.UnixConnector(self._unix, limit=self._connections, keepalive_timeout=KEEP_ALIVE_SECONDS)
        else:
            secure = self._base.startswith("https")
            context: ssl.SSLContext | bool = self.access.trust.context(certificate) if secure else True
            connector = aiohttp.TCPConnector(limit=self._connections, keepalive_timeout=KEEP_ALIVE_SECONDS, ssl=context)
        session = aiohttp.ClientSession(connector=connector, trust_env=False, cookie_jar=aiohttp.DummyCookieJar())
        # The library would send a PUT or DELETE again when a kept connection breaks: it may have been done.
        session._retry_connection = False
        return session

    def _url(self, request: Request) -> yarl.URL:
        query = f"?{urlencode(request.query)}" if request.query else ""
        return yarl.URL(f"{self._base}{quote(request.path, safe=_PATH)}{query}", encoded=True)

    async def _headers(self, request: Request) -> CIMultiDict[str]:
        headers: CIMultiDict[str] = CIMultiDict(await self.access.credentials.headers())
        headers["accept-encoding"] = "gzip" if self.access.compress else "identity"
        for name, text in (*self._own, *request.headers.items()):
            for value in text.split("\n"):
                headers.add(name, value)
        return headers


def _is_cut_off(response: Response) -> bool:
    """Whether the server cannot reach its store: it refuses, or answers from memory."""
    return response.code == 503 or any(name == "age" for name, _ in response.headers)


async def _drop(response: Response) -> None:
    if isinstance(response.content, LineStream | ReceivedBody):
        await response.content.close()


def _response(answer: aiohttp.ClientResponse, content: Raw | LineStream | ReceivedBody) -> Response:
    headers = tuple((name.lower(), value) for name, value in answer.headers.items())
    warnings = tuple(
        _ESCAPED.sub(r"\1", found[1])
        for name, value in headers
        if name == "warning"
        for found in _WARNING.finditer(value)
    )
    return Response(
        code=answer.status, content=content, content_type=answer.content_type, headers=headers, warnings=warnings
    )


async def _chunks(answer: aiohttp.ClientResponse, request: Request) -> AsyncIterator[bytes]:
    try:
        async for chunk in answer.content.iter_any():
            yield chunk
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise ConnectionFailed(f"reading {request.path}: {_words(error)}", sent=True) from error


def _failed(error: Exception, request: Request) -> Exception:
    """The exception for a request without an answer."""
    what = f"{request.method} {request.path}: {_words(error)}"
    match error:
        case aiohttp.ClientConnectorError() | aiohttp.ConnectionTimeoutError():
            return ConnectionFailed(what, sent=False)
        case TimeoutError():
            return RequestTimeout(what)
        case aiohttp.InvalidURL():
            return UsageError(what)
        case aiohttp.ClientError() | OSError():
            return ConnectionFailed(what, sent=True)
        case RuntimeError() if "closed" in str(error):
            return ConnectionFailed(what, sent=False)
    return error


def _words(error: Exception) -> str:
    if isinstance(error, asyncio.TimeoutError):
        return "no answer in time"
    return str(error) or type(error).__name__
