"""Listen on a socket: TLS, connections, signals.

In:  a server, an address, certificates.
Out: HTTP until `stop`. Then requests in flight may finish; watches end at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
from httptools import HttpParserError
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from drakit.api.exchange import Handler
from drakit.apiserver.auth.certificates import Pair
from drakit.apiserver.failures import head_too_large, url_too_long
from drakit.apiserver.http.asgi import CERTIFICATE, PATIENT, REFUSAL, TAKE_OVER, Application
from drakit.apiserver.http.connections import Acceptor, ConnectionLimits, Connections, raise_file_limit
from drakit.apiserver.requests.bodies import MAX_BODY
from drakit.base.errors import UsageError
from drakit.base.status import Status

KEEP_ALIVE_SECONDS = 75
HEADER_SECONDS = 30.0
HEADER_BYTES = 256 * 1024
HEADERS = 1000
URL_BYTES = 128 * 1024
STALL_SECONDS = 20.0
_BACKLOG = 2048
_PIECE = 64 * 1024
_SLICE = 16 * 1024
"""Bytes of a head that are parsed before its size is looked at again."""
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Protocol(HttpToolsProtocol):
    """HTTP/1.1 with the client's certificate, and with limits for slow and large clients.

    uvicorn limits neither the time nor the size of a request's head, nor the rest of a body after the response to it.
    It also buffers for ever what a client does not read.
    """

    _waiting: asyncio.TimerHandle | None = None
    """Fires when the head of a request takes too long."""
    _stalling: asyncio.TimerHandle | None = None
    """Fires when the client has not read for too long."""
    _unread = 0
    _surplus = 0
    _patient = False
    _refused = False
    made = False
    open_connections: Connections | None = None
    """Who counts the connections, if anybody does; `address` is what this one counts for."""
    address = ""

    def connection_made(self, transport: Any) -> None:
        self.made = True
        super().connection_made(transport)
        self._note_idle()
        connection = transport.get_extra_info("ssl_object")
        self.app_state = {**self.app_state, TAKE_OVER: self.take_over, PATIENT: self.be_patient}
        if connection is not None and (certificate := connection.getpeercert(binary_form=True)):
            self.app_state[CERTIFICATE] = certificate
        self._begin_head()

    def data_received(self, data: bytes) -> None:
        if self._waiting is None or len(data) <= _SLICE:
            self._feed(data)
            return
        for start in range(0, len(data), _SLICE):
            self._feed(data[start : start + _SLICE])

    def _feed(self, data: bytes) -> None:
        if self._refused or self.transport.is_closing():
            return
        if self._waiting is not None:
            self._head += len(data)
        super().data_received(data)
        if self._waiting is not None and self.headers is not None:
            self._check_head()

    def _check_head(self) -> None:
        """Refuse a head that is too large as soon as it is: the rest of it is not read."""
        if len(self.url) > URL_BYTES:
            self._refuse(url_too_long(URL_BYTES).status)
        elif len(self.headers) > HEADERS:
            self._refuse(head_too_large(f"more than {HEADERS} fields").status)
        elif self._head > HEADER_BYTES:
            self._refuse(head_too_large(f"more than {HEADER_BYTES} bytes").status)

    def _refuse(self, answer: Status) -> None:
        """Let the application give this answer, so that it is counted and logged as every other."""
        self._refused = True
        self.flow.pause_reading()
        del self.headers[:]
        self.url = self.url[:_SLICE]
        self.scope["state"][REFUSAL] = answer
        try:
            self.on_headers_complete()
        except HttpParserError:
            self._hang_up()
            return
        self.cycle.keep_alive = False

    def take_over(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """The connection, for a protocol that is not HTTP. Whoever takes it closes it; uvicorn forgets it.

        Raise ConnectionResetError when the client has gone meanwhile: nobody would tell the new protocol.
        """
        if self.transport.is_closing():
            raise ConnectionResetError("the client has gone")
        self._end_head()
        self._end_stall()
        self._unset_keepalive_if_required()
        self.cycle.response_started = self.cycle.response_complete = True
        self.connections.discard(self)
        # A client whose machine is gone says nothing: the kernel finds out.
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        reader = asyncio.StreamReader(limit=_PIECE, loop=self.loop)
        protocol = _Tunnelled(reader, self._leave)
        protocol.connection_made(self.transport)
        self.transport.set_protocol(protocol)
        self.flow.resume_reading()
        return reader, asyncio.StreamWriter(self.transport, protocol, reader, self.loop)

    def be_patient(self) -> None:
        """Do not disconnect a client that reads this response slowly: a log that somebody reads in a pager."""
        self._patient = True
        self._end_stall()

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: the application decides about upgrades, and answers other requests as if none was asked for."""

    def on_message_begin(self) -> None:
        self._surplus = 0
        self._patient = False
        self._begin_head()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._end_head()
        if not self._refused and len(self.headers) > HEADERS:
            self._refuse(head_too_large(f"more than {HEADERS} fields").status)
            return
        if self.open_connections is not None:
            self.open_connections.busy(self.address, self)
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._note_idle()

    def drop(self) -> None:
        """Close the connection: another one needs its place."""
        self.transport.abort()

    def _note_idle(self) -> None:
        if self.open_connections is not None and not self.pipeline and not self.transport.is_closing():
            self.open_connections.idle(self.address, self)

    def on_body(self, body: bytes) -> None:
        if self.cycle.response_complete:
            self._surplus += len(body)
            # The client ignores the 413 and goes on sending.
            if self._surplus > MAX_BODY:
                self.transport.abort()
        super().on_body(body)

    def pause_writing(self) -> None:
        super().pause_writing()
        if not self._patient:
            self._await_reader()

    def resume_writing(self) -> None:
        self._end_stall()
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        # `close` would wait until the client has read the rest.
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        super().timeout_keep_alive_handler()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_head()
        self._end_stall()
        self._leave()
        super().connection_lost(exc)

    def _leave(self) -> None:
        """Remove the connection from the count of open ones. Idempotent."""
        counted, self.open_connections = self.open_connections, None
        if counted is not None:
            counted.busy(self.address, self)
            counted.leave(self.address)

    def _await_reader(self) -> None:
        """Look again later. A client that has read nothing until then is disconnected."""
        self._unread = self.transport.get_write_buffer_size()
        self._stalling = self.loop.call_later(STALL_SECONDS, self._check_reader)

    def _check_reader(self) -> None:
        if self.transport.get_write_buffer_size() < self._unread:
            self._await_reader()
        else:
            self.transport.abort()

    def _end_stall(self) -> None:
        if self._stalling is not None:
            self._stalling.cancel()
            self._stalling = None

    def _begin_head(self) -> None:
        if self._waiting is None:
            self._head = 0
            self._waiting = self.loop.call_later(HEADER_SECONDS, self._hang_up)

    def _end_head(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _hang_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()


class _Tunnelled(asyncio.StreamReaderProtocol):
    """The protocol of a connection that was taken over. It counts as a connection until it ends."""

    def __init__(self, reader: asyncio.StreamReader, ended: Callable[[], None]) -> None:
        super().__init__(reader)
        self._ended = ended

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended()
        super().connection_lost(exc)


class Security(msgspec.Struct, frozen=True):
    """The server's certificate, and the CAs whose client certificates it accepts."""

    certificate: Pair
    client_cas: tuple[Path, ...] = ()

    def context(self) -> ssl.SSLContext:
        """Raise UsageError for a file that is missing or is no certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        files = self.certificate
        try:
            context.load_cert_chain(files.certificate, files.key)
        except OSError as error:
            raise UsageError(f"no certificate with its key in {files.certificate} and {files.key}: {error}") from None
        for authority in self.client_cas:
            try:
                context.load_verify_locations(authority)
            except OSError as error:
                raise UsageError(f"no certificate of an authority in {authority}: {error}") from None
            # Optional: clients may authenticate by token instead.
            context.verify_mode = ssl.CERT_OPTIONAL
        return context


def bind(host: str, port: int) -> socket.socket:
    """A listening socket. Port 0 takes any free port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Connections inherit it. Without it, the body of a response waits 40 ms for the acknowledgement of its head.
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        bound.bind((host, port))
        bound.listen(_BACKLOG)
    except OSError:
        bound.close()
        raise
    bound.setblocking(False)
    return bound


def bind_unix(path: Path) -> socket.socket:
    """A socket in the file system that only its owner may use. A stale socket of an earlier run is replaced."""
    if path.is_socket() and not _answers(path):
        path.unlink()
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # The mode must be right when the file appears: chmod afterwards would leave a moment for others.
    before = os.umask(0o177)
    try:
        bound.bind(str(path))
        bound.listen(_BACKLOG)
    except OSError:
        bound.close()
        raise
    finally:
        os.umask(before)
    bound.setblocking(False)
    return bound


def _answers(path: Path) -> bool:
    """Whether somebody listens there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(str(path)) == 0


class _Uvicorn(uvicorn.Server):
    """Accepts by `Acceptor`, tells when it listens, and drains the application before it waits for connections."""

    def __init__(self, config: uvicorn.Config, application: Application, connections: Connections) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()
        self._application = application
        self._connections = connections
        self._acceptors: list[Acceptor] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self.servers = []  # uvicorn's own way to accept has no limits
        for bound in sockets or ():
            acceptor = Acceptor(bound, self._protocol, self._connections, self.config.ssl)
            acceptor.start()
            self._acceptors.append(acceptor)
        self.started = True
        self.listening.set()

    def _protocol(self, address: str) -> Protocol:
        made = Protocol(self.config, self.server_state, {})
        made.open_connections, made.address = self._connections, address
        return made

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for acceptor in self._acceptors:
            await acceptor.stop()
        self._application.drain()
        await super().shutdown(sockets)


class Listener:
    """Serves one socket. `serve` returns after `stop`."""

    def __init__(
        self,
        server: Handler,
        bound: socket.socket,
        security: Security | None = None,
        *,
        limits: ConnectionLimits | None = None,
    ) -> None:
        application = Application(server)
        config = uvicorn.Config(
            application,
            http=Protocol,
            ws="none",
            lifespan="off",
            access_log=False,
            log_level="warning",
            log_config=None,
            backlog=_BACKLOG,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=2,
            server_header=False,
            date_header=True,
        )
        config.load()
        if security is not None:
            config.ssl = security.context()
        allowed = (limits or ConnectionLimits()).within(raise_file_limit())
        self._uvicorn = _Uvicorn(config, application, Connections(allowed))
        self._socket = bound
        self.stop_asked = asyncio.Event()
        """Set by `stop`: for those who wait for something else before they serve."""

    async def serve(self) -> None:
        try:
            # Not `serve`: that installs signal handlers of its own, see `stopped_by_signals`.
            await self._uvicorn._serve(sockets=[self._socket])
        finally:
            self._socket.close()

    @contextlib.contextmanager
    def stopped_by_signals(self) -> Iterator[None]:
        """SIGTERM and SIGINT call `stop`. The caller can then close what it has opened.

        uvicorn's own handling would raise the signal again at the end, and leave no time for that.
        """
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self.stop)
        try:
            yield
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)

    def stop(self) -> None:
        """Let requests in flight finish. A second call does not wait for them."""
        self._uvicorn.force_exit = self._uvicorn.should_exit
        self._uvicorn.should_exit = True
        self.stop_asked.set()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve in the background while the context is open."""
        task = asyncio.create_task(self.serve())
        try:
            started = asyncio.create_task(self._uvicorn.listening.wait())
            await asyncio.wait((task, started), return_when=asyncio.FIRST_COMPLETED)
            started.cancel()
            await asyncio.gather(started, return_exceptions=True)
            yield
        finally:
            self.stop()
            await task
