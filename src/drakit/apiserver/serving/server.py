"""The API server: a request in, a response out.

In:  a Request, from HTTP or from a client in this process.
Out: a Response. Every error becomes a Status; nothing is raised.

parse the path → authenticate → limit the load → authorize → find the resource → handle it → count it
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Self

import msgspec
from prometheus_client import CollectorRegistry

from drakit.api.exchange import JSON, BodyReader, Content, Raw, Request, Response, StatusContent, User
from drakit.api.registry import deprecation
from drakit.apiserver import metrics
from drakit.apiserver.admission.criteria.worker import FLOW, Worker
from drakit.apiserver.auth import authorization
from drakit.apiserver.auth.audit import AuditLog, Trail
from drakit.apiserver.auth.authentication import ANONYMOUS, Authentication
from drakit.apiserver.auth.authorization import Attributes, Decision
from drakit.apiserver.auth.impersonation import asks_for_another, impersonate
from drakit.apiserver.failures import (
    ApiError,
    Disconnected,
    PageNotFound,
    resource_not_found,
    translate,
    unavailable,
)
from drakit.apiserver.http.discovery import Discovery
from drakit.apiserver.kinds.release import version_document
from drakit.apiserver.metrics import ServerMetrics
from drakit.apiserver.openapi.pages import OpenAPIPages
from drakit.apiserver.requests import routing
from drakit.apiserver.requests.routing import RequestInfo, Routes, Target
from drakit.apiserver.serving.access import AccessControl
from drakit.apiserver.serving.bootstrap import announce
from drakit.apiserver.serving.eventexpiry import EventExpiry
from drakit.apiserver.serving.health import Health
from drakit.apiserver.serving.issuer import IssuerPages
from drakit.apiserver.serving.shares import Limits, Shares
from drakit.apiserver.verbs.context import ApiCall, ServerContext
from drakit.apiserver.verbs.dispatch import Resources
from drakit.apiserver.verbs.representation import in_accepted_form
from drakit.base import fieldselectors
from drakit.base.errors import UsageError
from drakit.store.freshness import request_reads

log = logging.getLogger("drakit.apiserver")

GIVEN_UP = 504
READ = "readOnly"
WRITE = "mutating"
_SELECTING = ("list", "watch", "deletecollection")
_READING = ("get", "list", "watch", "head")
_LONG_SELECTOR = 4096
"""Characters. Who selects one object by its name needs fewer; reading more of them would take long."""
_UNTIMED = datetime.min.replace(tzinfo=UTC)
_PAGE_NOT_FOUND = Response(code=404, content=Raw(b"404 page not found\n"), content_type="text/plain; charset=utf-8")


class Server:
    """Answers requests until it is closed: `async with await build_server(store) as server`.

    Invariant: `handle` never raises, and counts every request once. Invariant: every task and thread that a request or
    the composition started belongs to `resources`, `access` or `workers`, and `close` ends it.
    """

    def __init__(
        self,
        context: ServerContext,
        *,
        authentication: Authentication,
        routes: Routes,
        discovery: Discovery,
        documents: OpenAPIPages,
        health: Health,
        issuer: IssuerPages,
        metrics: ServerMetrics,
        resources: Resources,
        access: AccessControl,
        workers: Sequence[Worker],
        limits: Limits,
        expiry: EventExpiry | None = None,
        audit: AuditLog | None = None,
    ) -> None:
        self.context = context
        self.address = ""
        """Host and port at which clients reach the server, as discovery tells them."""
        self.pages: dict[str, Callable[[], bytes]] = {}
        """Further pages by path, for who may get that path: components of this process tell of themselves.

        They are JSON, below `/metrics/` the text of metrics.
        """
        self._authentication = authentication
        self._routes = routes
        self._discovery = discovery
        self._documents = documents
        self._health = health
        self._issuer = issuer
        self._metrics = metrics
        self._resources = resources
        self._access = access
        self._workers = tuple(workers)
        self._expiry = expiry
        self._closed = False
        self._audit = audit
        self._shares = Shares(limits)

    @property
    def registry(self) -> CollectorRegistry:
        """What `/metrics` shows: others in this process may add their metrics."""
        return self._metrics.registry

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def announce(self, address: str, *, client_ca: str = "") -> None:
        """Tell clients that the server is reached at this host and port: discovery, and the service `kubernetes`.

        `client_ca` (PEM) is the CA of client certificates. Other servers of the cluster trust it, too.
        """
        self.address = address
        await announce(self.context, address, client_ca)

    async def close(self) -> None:
        """End watches, followers, role aggregation and worker threads. Idempotent. The store stays open."""
        self._closed = True
        await self._resources.close()
        await self.context.admission.stop()
        await self._access.stop()
        if self._expiry is not None:
            await self._expiry.stop()
        for worker in self._workers:
            worker.close()

    async def handle(self, request: Request) -> Response:
        clock = self.context.clock
        begun = clock.monotonic()
        info: RequestInfo | None = None
        warnings: list[str] = []
        # Only the audit log asks what time it is.
        trail = Trail(clock.now() if self._audit is not None else _UNTIMED)
        try:
            if self._closed:
                raise unavailable("the server has stopped")
            if request.refusal is not None:
                raise ApiError(request.refusal)
            info = routing.parse(request)
            # The path is parsed before the user is known: audit and metrics name it, also if authentication fails.
            user = trail.user = self._authentication.authenticate(request)
            if request.identified is not None and user is not ANONYMOUS:
                request.identified(user.name)
            if asks_for_another(request.headers):
                user = trail.acting_as = await impersonate(self.context.authorizer, user, request.headers)
            if self._audit is not None:
                self._audit.begin(request, info, trail)
            response = await self._bounded(request, info, user, warnings, trail)
        except PageNotFound:
            response = _PAGE_NOT_FOUND
        except (Disconnected, asyncio.CancelledError):
            # Given up from outside: the request took too long, or its client is gone. It is noted all the same.
            self._note(request, info, trail, GIVEN_UP, begun)
            raise
        except Exception as error:
            # Warnings given so far go with the error, as upstream.
            response = in_accepted_form(_failed(error, warnings), request.headers.get("accept", ""))
        self._note(request, info, trail, response.code, begun, response.content)
        return response

    def _note(
        self,
        request: Request,
        info: RequestInfo | None,
        trail: Trail,
        code: int,
        begun: float,
        content: Content | None = None,
    ) -> None:
        clock = self.context.clock
        self._count(request, info, code, clock.monotonic() - begun)
        if self._audit is not None:
            self._audit.note(request, info, trail, code, clock.now(), content)

    async def _bounded(
        self, request: Request, info: RequestInfo, user: User, warnings: list[str], trail: Trail
    ) -> Response:
        """Give each request its turn, before it costs anything. Health and discovery are always answered."""
        FLOW.set(user.name)
        # Watches last for hours: counted, they would use up the limit.
        if info.verb == "watch" or not info.resource:
            return await self._authorized(request, info, user, warnings, trail)
        lane = self._shares.lane(user, reading=info.verb in _READING)
        try:
            turn = lane.enter(user.name)
        except ApiError:
            self._metrics.rejected()
            raise
        if turn is not None:
            await lane.wait(user.name, turn)
        try:
            return await self._authorized(request, info, user, warnings, trail)
        finally:
            lane.leave(user.name)

    async def _authorized(
        self, request: Request, info: RequestInfo, user: User, warnings: list[str], trail: Trail
    ) -> Response:
        # Before the resource is looked up: who may not see it is not told whether it exists.
        asked = _attributes(request, info, user)
        result = trail.decided(await self.context.authorizer.authorize(asked))
        if result.decision is not Decision.ALLOW:
            raise authorization.refusal(asked, result.reason)
        if not info.resource:
            return await self._page(request, info)
        # A group that nobody serves is a plain page, an unknown resource in a known group a Status: as upstream.
        if not self._discovery.knows_group(info.group):
            raise PageNotFound
        target = self._routes.resolve(info, request.method)
        if told := deprecation(target.group_version, target.kind.kind):
            warnings.append(told)
        if request.read_body is None:
            call = ApiCall(_with_body(request), target, user, warnings, trail.annotations)
            return await self._handled(call)
        return await self._with_read_body(request, request.read_body, target, user, warnings, trail)

    def _handled(self, call: ApiCall) -> Awaitable[Response]:
        """The answer of the resource."""
        return self._marked(call) if self.context.objects.store.shared else self._resources.handle(call)

    async def _marked(self, call: ApiCall) -> Response:
        """The same; a read that a shared store cannot verify just now is answered, and marked."""
        with request_reads(accept_unverified=call.target.verb in _READING) as reads:
            try:
                response = await self._resources.handle(call)
            except ApiError as error:
                # That something is not there is no answer from memory: it may have been written elsewhere meanwhile.
                raise error if reads.age is None else unavailable(f"the store does not answer: {error}") from None
        return response if reads.age is None else _unverified(response, reads.age)

    async def _with_read_body(
        self, request: Request, read: BodyReader, target: Target, user: User, warnings: list[str], trail: Trail
    ) -> Response:
        """Read the body, now that its sender may send it. It counts until the request is done."""
        bodies, taken = self._shares.bodies, 0

        def account(size: int) -> None:
            nonlocal taken
            bodies.take(user.name, size)
            taken += size

        try:
            trail.body = await read(account)
            sent = msgspec.structs.replace(request, body=trail.body, read_body=None)
            return await self._handled(ApiCall(sent, target, user, warnings, trail.annotations))
        finally:
            # Also what was read of a body that turned out to be too large.
            bodies.give_back(user.name, taken)

    async def _page(self, request: Request, info: RequestInfo) -> Response:
        """Answer a path that names no resource: discovery, health, version, metrics, OpenAPI."""
        if info.verb not in ("get", "head"):
            raise PageNotFound
        found = self._discovery.answer(request, self.address)
        if found is not None:
            return in_accepted_form(found, request.headers.get("accept", ""))
        answer = self._issuer.answer(request, self.address) or await self._health.answer(request)
        if answer is not None:
            return answer
        page = self.pages.get(request.path.rstrip("/"))
        if page is not None:
            counted = request.path.startswith("/metrics/")
            return Response(content=Raw(page()), content_type=metrics.CONTENT_TYPE if counted else JSON)
        parts = [part for part in request.path.split("/") if part]
        match parts:
            case ["version"]:
                return version_document()
            case ["metrics"]:
                return await self._metrics_page()
            case ["openapi", "v2"]:
                return await self._documents.second(request)
            case ["openapi", "v3", *_]:
                return await self._documents.answer(request)
            case ["apis", group, *_] if self._discovery.knows_group(group):
                raise resource_not_found()
            case ["api", _]:
                raise resource_not_found()
        raise PageNotFound

    async def _metrics_page(self) -> Response:
        self._metrics.audit_lost(self._audit.lost if self._audit is not None else 0)
        for kind in (READ, WRITE):
            self._metrics.inflight(kind, self._shares.inflight(reading=kind == READ))
        page = self._metrics.page(await self.context.objects.store.stats())
        return Response(content=Raw(page), content_type=metrics.CONTENT_TYPE)

    def _count(self, request: Request, info: RequestInfo | None, code: int, seconds: float) -> None:
        verb = metrics.reported_verb(request, info.verb if info else "", info.subresource if info else "")
        if info is None or not info.resource or not self._routes.knows(info):
            # Labels are kept for ever. A scan of unknown paths must not fill the memory with them.
            labels = (verb, "", "", "", "", "")
        else:
            scope = "resource" if info.name else "namespace" if info.namespace else "cluster"
            labels = (verb, info.group, info.version, info.resource, info.subresource, scope)
        self._metrics.observe(labels, code, seconds)


def _attributes(request: Request, info: RequestInfo, user: User) -> Attributes:
    if not info.resource:
        return Attributes(user=user, verb=info.verb, path=request.path)
    selecting = info.verb in _SELECTING
    return Attributes(
        user=user,
        verb=info.verb,
        group=info.group,
        version=info.version,
        resource=info.resource,
        subresource=info.subresource,
        namespace=info.namespace,
        name=info.name or _selected_name(request, info),
        path=request.path,
        label_selector=request.parameter("labelSelector") if selecting else "",
        field_selector=request.parameter("fieldSelector") if selecting else "",
    )


def _selected_name(request: Request, info: RequestInfo) -> str:
    """The name in `fieldSelector=metadata.name=…`: such a list is authorized like a get of that object."""
    selector = request.parameter("fieldSelector")
    if not selector or info.verb not in _SELECTING or len(selector) > _LONG_SELECTOR:
        return ""
    try:
        return fieldselectors.parse(selector).required_value("metadata.name") or ""
    except UsageError:
        return ""


def _with_body(request: Request) -> Request:
    """Give a patch from a client in this process its bytes: errors quote them."""
    if request.method != "PATCH" or request.document is None:
        return request
    return msgspec.structs.replace(request, body=msgspec.json.encode(request.document))


def _unverified(response: Response, age: float) -> Response:
    """The mark of an answer from memory: a warning for people, and the header of HTTP caches for programs."""
    warning = f"the store does not answer: this is what the server knew, it may be {age:.0f} s old"
    return msgspec.structs.replace(
        response, headers=(*response.headers, ("age", f"{age:.0f}")), warnings=(*response.warnings, warning)
    )


def _failed(error: Exception, warnings: list[str]) -> Response:
    answer = translate(error)
    if answer.status.code == 500 and not isinstance(error, ApiError):
        log.exception("request failed", exc_info=error)
    return Response(
        code=answer.status.code, content=StatusContent(answer.status), headers=answer.headers, warnings=tuple(warnings)
    )
