"""A gRPC server on a Unix socket that it owns, and that comes back when somebody removes it.

In:  a path, and what to serve there.
Out: a socket at that path. It appears whole and in one step, also in the place of an older one; what is removed at the
     end is our own, never that of an instance that has taken the path over meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from enum import Enum
from pathlib import Path

import grpc.aio

from drakit.base.clock import Clock
from drakit.base.errors import Unavailable
from drakit.client import V
from drakit.driverkit.serving.paths import digest

log = logging.getLogger("drakit.driverkit")

LOOK_EVERY = 1.0
"""Seconds between two looks at whether the socket is still there."""


class Owner(Enum):
    OURS = "ours"
    OTHER = "other"
    NOBODY = "nobody"


class UnixServer:
    def __init__(self, path: Path, add: Callable[[grpc.aio.Server], None], clock: Clock) -> None:
        self.path = path
        self._add = add
        self._clock = clock
        self._server: grpc.aio.Server | None = None
        self._identity: tuple[int, int] | None = None
        self._yielded = False
        self._wanted = False
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def running(self, *, grace: float = 5.0) -> AsyncIterator[None]:
        """Serve as long as the context is open. A directory that is not there yet is waited for by `keep`."""
        self._wanted = True
        async with self._lock:
            with suppress(FileNotFoundError):
                await self._start()
        try:
            yield
        finally:
            self._wanted = False
            async with self._lock:
                await self._stop(grace)

    async def _start(self) -> None:
        """Serve. Raise FileNotFoundError when there is no such directory, Unavailable when it cannot be used."""
        if not self.path.parent.is_dir():
            raise FileNotFoundError(self.path.parent)
        server = grpc.aio.server()
        self._add(server)
        # gRPC removes, when it stops, the path that it bound, whoever has it by then: so it binds another one.
        # Kubelets ignore names that begin with a dot.
        beside = self.path.with_name(f".{digest(f'{self.path}{id(self)}')[:6]}")
        beside.unlink(missing_ok=True)
        try:
            server.add_insecure_port(f"unix://{beside}")
        except RuntimeError as error:
            raise Unavailable(f"cannot listen on {self.path}: {error}") from error
        self._server = server
        await server.start()
        # After start: a kubelet dials as soon as the name appears.
        beside.rename(self.path)
        self._identity = _identity(self.path)
        log.log(V[2], "listening on %s", self.path)

    async def _stop(self, grace: float) -> None:
        """Take no more calls; those under way may end."""
        server, self._server = self._server, None
        # Before the server stops: no new connection comes while calls under way end.
        if self.owner() is Owner.OURS:
            self.path.unlink(missing_ok=True)
        self._identity = None
        if server is not None:
            await server.stop(grace)

    def owner(self) -> Owner:
        found = _identity(self.path)
        if found is None:
            return Owner.NOBODY
        return Owner.OURS if found == self._identity else Owner.OTHER

    async def keep(self) -> None:
        """Serve again when the socket, or its directory, was removed and the directory is back. Until cancelled."""
        while True:
            await self._clock.sleep(LOOK_EVERY)
            try:
                await self.look()
            except (Unavailable, OSError) as error:
                log.warning("%s: %s", self.path, error)

    async def look(self) -> None:
        """Check the socket once, and make it again if it was removed."""
        async with self._lock:
            owner = self.owner()
            if owner is Owner.OTHER and not self._yielded:
                log.warning("%s: another instance has taken this socket over", self.path)
            self._yielded = owner is Owner.OTHER
            if not self._wanted or owner is not Owner.NOBODY or not self.path.parent.is_dir():
                return
            if self._server is not None:
                log.warning("%s was removed: listening again", self.path)
                await self._stop(0)
            await self._start()


def remove_stale(directory: Path, prefix: str, suffix: str) -> list[Path]:
    """Remove sockets at which nobody listens any more: what a process leaves behind that was killed."""
    removed = []
    for path in sorted(directory.glob(f"{prefix}*{suffix}")):
        if _identity(path) is not None and not _answers(path):
            path.unlink(missing_ok=True)
            removed.append(path)
    return removed


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:  # busy, or too long: somebody may be there
            return True
        return True


def _identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of a socket; none when there is no socket at the path."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISSOCK(found.st_mode) else None
