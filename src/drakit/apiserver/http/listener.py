"""Listen on a socket: TLS, connections, signals.

In:  a server, an address, certificates.
Out: HTTP until `stop`. Then requests in flight may finish; watches end at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import signal
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import uvicorn

from drakit.api.exchange import Handler
from drakit.apiserver.auth.certificates import Pair
from drakit.apiserver.http.asgi import Application
from drakit.apiserver.http.connections import Acceptor, ConnectionLimits, Connections, raise_file_limit
from drakit.apiserver.http.protocol import PIECE, Intake, Protocol
from drakit.apiserver.http.turns import Turns
from drakit.base.errors import UsageError
from drakit.base.inputfiles import read_settings

KEEP_ALIVE_SECONDS = 75
_BACKLOG = 2048
GRACE_SECONDS = 2.0
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


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
        for each in (files.certificate, files.key, *self.client_cas):
            _check(each)
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


def _check(path: Path) -> None:
    """Raise UsageError for what OpenSSL would read without end: a device, a pipe, a very long file."""
    try:
        read_settings(path)
    except OSError as error:
        raise UsageError(f"no certificate or key in {path}: {error.strerror or error}") from None


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
        self._turns = Turns()
        self._buffer = memoryview(bytearray(PIECE))
        self._acceptors: list[Acceptor] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self.servers = []  # uvicorn's own way to accept has no limits
        for bound in sockets or ():
            acceptor = Acceptor(bound, self._intake, self._connections, self.config.ssl)
            acceptor.start()
            self._acceptors.append(acceptor)
        self.started = True
        self.listening.set()

    def _intake(self, address: str) -> Intake:
        made = Protocol(self.config, self.server_state, {})
        made.open_connections, made.address, made.turns = self._connections, address, self._turns
        return Intake(made, self._buffer)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # In this order: who finds no server here asks another one, and who is connected already is answered.
        for acceptor in self._acceptors:
            await acceptor.stop()
        for bound in sockets or ():
            bound.close()
        self._application.drain()
        await super().shutdown(sockets)
        # Told a second time to stop, uvicorn leaves connections open behind it.
        for left in list(self.server_state.connections):
            left.transport.abort()
        await asyncio.sleep(0)  # sockets are closed on the loop's next turn


class Listener:
    """Serves one socket. `serve` returns after `stop`."""

    def __init__(
        self,
        server: Handler,
        bound: socket.socket,
        security: Security | None = None,
        *,
        limits: ConnectionLimits | None = None,
        grace: float = GRACE_SECONDS,
    ) -> None:
        """`grace` is what requests in flight have to finish when the server stops."""
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
            timeout_graceful_shutdown=math.ceil(grace),
            server_header=False,
            # The address of a client is where it connects from: whoever says something else is not believed.
            proxy_headers=False,
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
