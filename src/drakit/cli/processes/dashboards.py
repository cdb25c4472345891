"""The dashboard in a process: in front of our own API server, or alone before any other.

In:  a server, or how to reach one.
Out: a handler for a listener, while the context is open; and the login token of whoever started it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from drakit.api.exchange import Handler, Request, Response
from drakit.apiserver import Server
from drakit.apiserver.auth.identities import ADMIN
from drakit.base.clock import RealClock
from drakit.cli.processes.host import kept_token
from drakit.dashboard import Dashboard, within_process
from drakit.drivers import PROFILE_TEMPLATES
from drakit.informers import Informers

ROOT = "/dashboard"


class DashboardInFront:
    """Answers what is below /dashboard by the dashboard, and everything else by the server."""

    def __init__(self, dashboard: Handler, server: Handler) -> None:
        self._dashboard = dashboard
        self._server = server

    async def handle(self, request: Request) -> Response:
        ours = request.path == ROOT or request.path.startswith(f"{ROOT}/")
        return await (self._dashboard if ours else self._server).handle(request)


@asynccontextmanager
async def with_dashboard(
    server: Server, login: Path, informers: Informers | None = None, *, allow_changes: bool = False
) -> AsyncIterator[Handler]:
    """The server with the dashboard in front of it. Its figures are on the server's `/metrics`, too.

    `informers` are those of the components around the server, if there are any.
    """
    dashboard = Dashboard(
        within_process(server, ADMIN),
        clock=RealClock(),
        login=kept_token(login),
        allow_changes=allow_changes,
        templates=PROFILE_TEMPLATES,
        informers=informers,
    )
    server.registry.register(dashboard.collector)
    async with dashboard.running():
        yield DashboardInFront(dashboard, server)
