"""Live views, one for each set of credentials: open while a page uses it, and for a short time after.

In:  viewers.
Out: views that are current. Invariant: what was read with one viewer's credentials is handed to that viewer only.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from drakit.base.clock import Clock
from drakit.base.errors import Unavailable
from drakit.client import Client, Unauthorized
from drakit.dashboard.live import LiveView, live_view, whoami
from drakit.dashboard.viewers import Connect, Viewer
from drakit.explain import NodeTemplates
from drakit.informers import Informers

LINGER_SECONDS = 30.0
"""How long a view outlives its last page: a connection that broke can resume where it was."""
MOST_SESSIONS = 100


class _Session:
    def __init__(self) -> None:
        self.stack = AsyncExitStack()
        self.live: asyncio.Task[LiveView] | None = None
        self.users = 0
        self.end: asyncio.TimerHandle | None = None


class ViewerSessions:
    def __init__(
        self,
        connect: Connect,
        clock: Clock,
        templates: NodeTemplates | None = None,
        informers: Informers | None = None,
    ) -> None:
        """`informers`, if the process has some, are for whoever started the dashboard."""
        self._templates = templates
        self._informers = informers
        self._connect = connect
        self._clock = clock
        self._open: dict[Viewer, _Session] = {}
        self._closing: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def view(self, viewer: Viewer) -> AsyncIterator[LiveView]:
        """Raise Unauthorized for a viewer whom the server does not know (any more)."""
        session = self._session(viewer)
        session.users += 1
        try:
            fresh = session.live is None
            if session.live is None:
                session.live = asyncio.create_task(self._started(session, viewer))
            # Shielded: a page that goes away must not cancel the start that other pages of the viewer wait for.
            live = await asyncio.shield(session.live)
            if not fresh:
                # A token may have been withdrawn since the view was opened.
                await whoami(live.client)
            yield live
        except Unauthorized:
            self._drop(viewer, session)
            raise
        except BaseException:
            if session.live is None or (session.live.done() and _failed(session.live)):
                self._drop(viewer, session)
            raise
        finally:
            session.users -= 1
            if not session.users and self._open.get(viewer) is session:
                loop = asyncio.get_running_loop()
                session.end = loop.call_later(LINGER_SECONDS, self._drop, viewer, session)

    async def close(self) -> None:
        for viewer, session in list(self._open.items()):
            self._drop(viewer, session)
        await asyncio.gather(*self._closing, return_exceptions=True)

    def _session(self, viewer: Viewer) -> _Session:
        found = self._open.get(viewer)
        if found is None:
            if len(self._open) >= MOST_SESSIONS:
                self._drop_idle()
            # Still full: every view is in use. A viewer who looks is never thrown out for a new one.
            if len(self._open) >= MOST_SESSIONS:
                raise Unavailable(f"the dashboard has {MOST_SESSIONS} viewers: try again later")
            found = self._open[viewer] = _Session()
        if found.end is not None:
            found.end.cancel()
            found.end = None
        return found

    def _drop_idle(self) -> None:
        for viewer, session in list(self._open.items()):
            if not session.users:
                self._drop(viewer, session)

    async def _started(self, session: _Session, viewer: Viewer) -> LiveView:
        client = await session.stack.enter_async_context(Client(self._connect(viewer), clock=self._clock))
        # Everybody else may have fewer rights than who filled these caches.
        shared = self._informers if viewer == Viewer(own=True) else None
        view = live_view(client, namespace=viewer.namespace, templates=self._templates, informers=shared)
        return await session.stack.enter_async_context(view)

    def _drop(self, viewer: Viewer, session: _Session) -> None:
        """Idempotent. The watches end; whoever still has the view sees no more changes."""
        if self._open.get(viewer) is not session:
            return
        del self._open[viewer]
        if session.end is not None:
            session.end.cancel()
        task = asyncio.create_task(_end(session))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _failed(task: asyncio.Task[LiveView]) -> bool:
    return task.cancelled() or task.exception() is not None


async def _end(session: _Session) -> None:
    if session.live is not None:
        session.live.cancel()
        await asyncio.gather(session.live, return_exceptions=True)
    await session.stack.aclose()
