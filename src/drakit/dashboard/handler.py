"""The dashboard as a handler of requests: `/dashboard` and all below it.

In:  requests of a listener.
Out: files of the page; JSON and events for a viewer with credentials; a Status for everything else.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry, generate_latest

from drakit.api.exchange import Document, Raw, Request, Response, StatusContent
from drakit.base.clock import Clock
from drakit.base.errors import DrakitError, Forbidden, NotFound, Retryable, Unavailable, UsageError
from drakit.base.status import failure
from drakit.client import Answered, Unauthorized
from drakit.dashboard import pages, questions
from drakit.dashboard.changes import make_changes
from drakit.dashboard.history import ClusterHistory
from drakit.dashboard.live import LiveView
from drakit.dashboard.metrics import HistoryCollector
from drakit.dashboard.sessions import ViewerSessions
from drakit.dashboard.streams import EventsBody
from drakit.dashboard.viewers import Connect, Viewer, viewer_of
from drakit.explain import NodeTemplates
from drakit.informers import Informers

ROOT = "/dashboard"
_API = f"{ROOT}/api/"
_MOST_BODY = 1 << 20
_AT_ONCE = 4
"""Questions that are worked out at the same time; more wait."""
_NO_STORE = (("cache-control", "no-store"),)
_RETRY_SECONDS = 5.0
_KNOWN = frozenset({"namespace", "name", "kind", "key", "only"})
"""Parameters. Everything else in a query is refused: above all a token, which would end up in logs and histories."""

Ask = Callable[["Dashboard", LiveView, Request], Awaitable[questions.Answer]]


class Dashboard:
    """`login` is the token of whoever started it; `allow_changes` lets viewers change what they have rights to.

    `templates` are kinds of nodes that what-if and suggestions may add. `informers` are those of a process that has
    some already: whoever started the dashboard may see all that they have.
    """

    def __init__(
        self,
        connect: Connect,
        *,
        clock: Clock,
        login: str = "",
        allow_changes: bool = False,
        templates: NodeTemplates | None = None,
        informers: Informers | None = None,
    ) -> None:
        self.sessions = ViewerSessions(connect, clock, templates, informers)
        self.templates = templates or {}
        self.history = ClusterHistory(clock)
        self.collector = HistoryCollector(self.history)
        self.allow_changes = allow_changes
        self._clock = clock
        self._login = login
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._registry = CollectorRegistry()
        self._registry.register(self.collector)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Metrics are collected while the context is open, with the rights of whoever started the dashboard."""
        task = asyncio.create_task(self._follow())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await self.sessions.close()

    async def handle(self, request: Request) -> Response:
        try:
            response = await self._answered(request)
        except Exception as error:  # every answer is a Status
            response = _refusal(error)
        return pages.guarded(response)

    async def _answered(self, request: Request) -> Response:
        if request.refusal is not None:
            return Response(code=request.refusal.code, content=StatusContent(request.refusal))
        path = request.path.rstrip("/")
        if not path.startswith(_API) and path != f"{ROOT}/metrics":
            if request.method not in ("GET", "HEAD"):
                raise UsageError(f"{request.method} is not possible here")
            name = "index.html" if path == ROOT else path.removeprefix(f"{ROOT}/static/")
            found = pages.page(name, request) if not request.query else None
            if found is None:
                raise UsageError("the page takes no parameters") if request.query else NotFound("404 page not found")
            return found
        viewer = self._viewer(request)
        if path == f"{ROOT}/metrics":
            return await self._metrics(viewer)
        return await self._api(path.removeprefix(_API), viewer, request)

    def _viewer(self, request: Request) -> Viewer:
        unknown = sorted({name for name, _ in request.query} - _KNOWN)
        if unknown:
            raise UsageError(f'"{unknown[0]}" is no parameter; a token goes into the Authorization header, never here')
        # A browser sends a client certificate with every request to us, also with one that another site made it send.
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise Forbidden("requests from other sites are not answered")
        viewer = viewer_of(request, self._login, request.parameter("only"))
        if not (viewer.own or viewer.token or viewer.certificate):
            raise _unknown_viewer()
        return viewer

    async def _api(self, name: str, viewer: Viewer, request: Request) -> Response:
        if name == "events":
            body = EventsBody(self.sessions.view(viewer), request.headers.get("last-event-id", ""))
            await body.start()
            return Response(content=body, content_type="text/event-stream", headers=_NO_STORE)
        if name == "history.csv":
            async with self.sessions.view(viewer) as live:
                _sees_everything(live, viewer)
            headers = (*_NO_STORE, ("content-disposition", 'attachment; filename="drakit-history.csv"'))
            data = self.history.as_csv().encode()
            return Response(content=Raw(data), content_type="text/csv; charset=utf-8", headers=headers)
        ask = _QUESTIONS.get((request.method, name))
        if ask is None:
            raise NotFound("404 page not found")
        async with self.sessions.view(viewer) as live, self._slots:
            if name == "history":
                _sees_everything(live, viewer)
            answer = await ask(self, live, request)
        return Response(content=Document(answer), headers=_NO_STORE)

    async def _metrics(self, viewer: Viewer) -> Response:
        async with self.sessions.view(viewer) as live:
            _sees_everything(live, viewer)
        data = generate_latest(self._registry)
        return Response(content=Raw(data), content_type="text/plain; version=0.0.4; charset=utf-8", headers=_NO_STORE)

    async def _follow(self) -> None:
        while True:
            with suppress(DrakitError):
                async with self.sessions.view(Viewer(own=True)) as live:
                    await self.history.follow(live)
            await self._clock.sleep(_RETRY_SECONDS)

    async def change(self, live: LiveView, request: Request) -> questions.Answer:
        if not self.allow_changes:
            raise Forbidden("this dashboard changes nothing: it was started without --allow-changes")
        return {"done": await make_changes(live.client, questions.question_of(await _body(request)))}


async def _state(dashboard: Dashboard, live: LiveView, _: Request) -> questions.Answer:
    return {
        "user": live.user,
        "forbidden": live.forbidden,
        "allowChanges": dashboard.allow_changes,
        "templates": list(dashboard.templates),
    }


async def _explain(_: Dashboard, live: LiveView, request: Request) -> questions.Answer:
    return await questions.explanation(live, *_named(request))


async def _object(_: Dashboard, live: LiveView, request: Request) -> questions.Answer:
    return await questions.one_object(live, *_named(request))


async def _flow(_: Dashboard, live: LiveView, request: Request) -> questions.Answer:
    return await questions.flow(live, request.parameter("namespace"), request.parameter("name"))


async def _device(_: Dashboard, live: LiveView, request: Request) -> questions.Answer:
    return await questions.device(live, request.parameter("key"))


async def _select(_: Dashboard, live: LiveView, request: Request) -> questions.Answer:
    return await questions.selection(live, (await _body(request)).decode(errors="replace"))


async def _what_if(_: Dashboard, live: LiveView, request: Request) -> questions.Answer:
    return await questions.what_would_be(live, questions.question_of(await _body(request)))


async def _history(dashboard: Dashboard, _: LiveView, __: Request) -> questions.Answer:
    samples: Any = msgspec.to_builtins(list(dashboard.history.samples))
    return {"samples": samples}


_QUESTIONS: dict[tuple[str, str], Ask] = {
    ("GET", "state"): _state,
    ("GET", "pending"): lambda _, live, __: questions.pending(live),
    ("GET", "pods"): lambda _, live, __: questions.pods(live),
    ("GET", "explain"): _explain,
    ("GET", "object"): _object,
    ("GET", "flow"): _flow,
    ("GET", "device"): _device,
    ("GET", "history"): _history,
    ("POST", "selector"): _select,
    ("POST", "whatif"): _what_if,
    ("POST", "changes"): Dashboard.change,
}


def _named(request: Request) -> tuple[str, str, str]:
    return request.parameter("kind"), request.parameter("namespace"), request.parameter("name")


async def _body(request: Request) -> bytes:
    size = 0

    def account(number: int) -> None:
        nonlocal size
        size += number
        if size > _MOST_BODY:
            raise UsageError(f"the question is longer than {_MOST_BODY} bytes")

    return await request.read_body(account) if request.read_body is not None else request.body


def _sees_everything(live: LiveView, viewer: Viewer) -> None:
    """Raise Forbidden unless the viewer may list the whole cluster: metrics are about all of it."""
    if live.forbidden or viewer.namespace:
        why = live.forbidden[0] if live.forbidden else "only one namespace is looked at"
        raise Forbidden(f"figures over time are of the whole cluster: {why}")


def _unknown_viewer() -> Unauthorized:
    return Unauthorized(failure(401, "Unauthorized", "log in with a token"))


def _refusal(error: Exception) -> Response:
    status = getattr(error, "status", None) if isinstance(error, Answered) else None
    if status is None:
        code, reason = next((found for kind, found in _CODES if isinstance(error, kind)), (500, "InternalError"))
        status = failure(code, reason, str(error) or type(error).__name__)
    return Response(code=status.code or 500, content=StatusContent(status), headers=_NO_STORE)


_CODES: tuple[tuple[type[Exception], tuple[int, str]], ...] = (
    (NotFound, (404, "NotFound")),
    (Forbidden, (403, "Forbidden")),
    (Unavailable, (503, "ServiceUnavailable")),
    (Retryable, (503, "ServiceUnavailable")),
    (DrakitError, (400, "BadRequest")),
)
