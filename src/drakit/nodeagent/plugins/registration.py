"""Register plugins as their sockets appear, and forget them as these go.

In:  sockets in the registry directory.
Out: GetInfo, the handler of the plugin's type, NotifyRegistrationStatus with the reason of a refusal.

A socket that was replaced is another plugin: the old one is forgotten first. Whoever is refused or does not answer is
asked again, after 1, 2, 3, 5, ... seconds, and after 2, 3, 4, 5, ... when it let GetInfo time out, as a kubelet does.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Mapping
from typing import Protocol

from drakit.base.clock import Clock
from drakit.base.errors import DrakitError, Terminal
from drakit.nodeagent.plugins.contract import Dialer, PluginCallFailed, PluginInfo, RegistrationPeer
from drakit.nodeagent.plugins.directory import SocketDirectory, Stamp

log = logging.getLogger("drakit.nodeagent")

GET_INFO_SECONDS = 1.0
_FIRST_BACKOFF = 0.5
_LONGEST_BACKOFF = 122.0
_LATE_LOOKS = 5


class RegistrationRefused(Terminal):
    """The plugin cannot be used as it is; the text goes to it."""


class PluginHandler(Protocol):
    """The user of plugins of one type. `validate` and `register` raise RegistrationRefused."""

    def validate(self, info: PluginInfo, endpoint: str) -> None: ...

    def register(self, info: PluginInfo, endpoint: str, socket: str) -> None: ...

    async def deregister(self, socket: str) -> None:
        """Idempotent."""
        ...


class PluginRegistration:
    """Invariant: one task per socket that is there; the task ends what it registered."""

    def __init__(
        self, directory: SocketDirectory, dialer: Dialer, handlers: Mapping[str, PluginHandler], clock: Clock
    ) -> None:
        self._directory = directory
        self._dialer = dialer
        self._handlers = handlers
        self._clock = clock
        self._stamps: dict[str, Stamp] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._attempted: dict[str, asyncio.Event] = {}
        self._looked = asyncio.Event()

    async def first_attempts(self) -> None:
        """Return when every plugin that was there at the start has been asked once."""
        await self._looked.wait()
        await asyncio.gather(*(each.wait() for each in list(self._attempted.values())))

    async def run(self) -> None:
        """Until cancelled; then every plugin is forgotten."""
        try:
            while True:
                await self._reconcile()
                self._looked.set()
                await self._directory.changed()
        finally:
            for path in list(self._tasks):
                await self._forget(path)

    async def _reconcile(self) -> None:
        found = self._directory.sockets()
        for path in [path for path, stamp in self._stamps.items() if found.get(path) != stamp]:
            await self._forget(path)
        for path, stamp in found.items():
            if path not in self._tasks:
                self._stamps[path] = stamp
                self._attempted[path] = asyncio.Event()
                self._tasks[path] = asyncio.create_task(self._attend(path), name=f"plugin {path}")

    async def _forget(self, path: str) -> None:
        del self._stamps[path]
        self._attempted.pop(path).set()
        task = self._tasks.pop(path)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def _attend(self, path: str) -> None:
        """Register the plugin of a socket; hold it until cancelled."""
        backoff, began = _FIRST_BACKOFF, self._clock.monotonic()
        while (handler := await self._first_or_next(path)) is None:
            taken = self._clock.monotonic() - began
            await self._clock.sleep(_next_look(taken, backoff) - taken)
            began = self._clock.monotonic()
            backoff = min(backoff * 2, _LONGEST_BACKOFF)
        try:
            await asyncio.Event().wait()
        finally:
            await handler.deregister(path)

    async def _first_or_next(self, path: str) -> PluginHandler | None:
        try:
            return await self._attempt(path)
        finally:
            if (attempted := self._attempted.get(path)) is not None:
                attempted.set()

    async def _attempt(self, path: str) -> PluginHandler | None:
        peer = self._dialer.registration(path)
        try:
            info = await self._get_info(peer)
            return await self._offer(peer, info, path)
        except DrakitError as error:
            log.warning("registration of %s: %s", path, error)
            return None
        except Exception:
            # Without its task a plugin would be left alone for as long as its socket stays.
            log.exception("registration of %s has failed", path)
            return None
        finally:
            await peer.close()

    async def _offer(self, peer: RegistrationPeer, info: PluginInfo, path: str) -> PluginHandler | None:
        try:
            handler = self._accept(info, path)
        except RegistrationRefused as refusal:
            log.warning("plugin %s at %s is refused: %s", info.name, path, refusal)
            await peer.notify(registered=False, error=f"RegisterPlugin error -- {refusal}")
            return None
        try:
            await peer.notify(registered=True, error="")
        except PluginCallFailed as error:
            log.warning("plugin %s was not told of its registration: %s", info.name, error)
        return handler

    def _accept(self, info: PluginInfo, path: str) -> PluginHandler:
        handler = self._handlers.get(info.type)
        if handler is None:
            raise RegistrationRefused(f"no handler registered for plugin type: {info.type} at socket {path}")
        endpoint = info.endpoint or path
        try:
            handler.validate(info, endpoint)
        except RegistrationRefused as refusal:
            raise RegistrationRefused(f"plugin validation failed with err: {refusal}") from None
        try:
            handler.register(info, endpoint, path)
        except RegistrationRefused as refusal:
            raise RegistrationRefused(f"plugin registration failed with err: {refusal}") from None
        return handler

    async def _get_info(self, peer: RegistrationPeer) -> PluginInfo:
        call = asyncio.ensure_future(peer.get_info())
        limit = asyncio.ensure_future(self._clock.sleep(GET_INFO_SECONDS))
        try:
            await asyncio.wait((call, limit), return_when=asyncio.FIRST_COMPLETED)
            if not call.done():
                raise PluginCallFailed("DeadlineExceeded", "context deadline exceeded")
            return call.result()
        finally:
            for each in (call, limit):
                each.cancel()
            await asyncio.gather(call, limit, return_exceptions=True)


def _next_look(taken: float, backoff: float) -> float:
    """Seconds from the start of an attempt that took that long and failed to the next one.

    The kubelet looks once a second and lets a retry pass only when more than its backoff is over since the failure. Its
    looks come a little late, each by some more: where both fall together, the late ones pass.
    """
    due = round(taken, 2) + backoff
    whole = math.floor(due)
    return float(whole if whole == due and whole >= _LATE_LOOKS else whole + 1)
