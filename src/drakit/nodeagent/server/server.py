"""The HTTPS server of a node: what `kubectl logs`, `exec`, `attach`, `cp` and `port-forward` reach in the end.

In:  requests of the API server, or of whoever else has a certificate or a token and the right to ask.
Out: the pages of `pages` and `streams`.

    async with NodeServer(bound, security, access, pods=pods, runtime=runtime, clock=clock, …) as server:
        node.status.daemonEndpoints.kubeletEndpoint.Port = server.port

TLS is always on. A client certificate that another CA has signed ends the handshake; without one, a token is needed.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from aiohttp import web

from drakit.base.clock import Clock
from drakit.base.errors import DrakitError
from drakit.nodeagent.runtimes.contract import Runtime
from drakit.nodeagent.server.authentication import Authenticator
from drakit.nodeagent.server.authorization import NodeRequestAuthorizer
from drakit.nodeagent.server.lookup import NodeRequestError, PodSource
from drakit.nodeagent.server.pages import Health, Metrics, NodePages
from drakit.nodeagent.server.renewal import CertificateRenewal, NodeCertificates
from drakit.nodeagent.server.streams import StreamPages

log = logging.getLogger("drakit.nodeagent.server")

SHUTDOWN_SECONDS = 2.0

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class NodeAccess:
    """Who is calling, and what they may do."""

    authentication: Authenticator
    authorization: NodeRequestAuthorizer


async def _healthy() -> str:
    return ""


class NodeServer:
    """Serves while its context is open; leaving it ends every stream. It owns the socket from then on."""

    def __init__(
        self,
        bound: socket.socket,
        certificates: NodeCertificates,
        access: NodeAccess,
        *,
        node_name: str,
        pods: PodSource,
        runtime: Runtime,
        clock: Clock,
        metrics: Metrics = bytes,
        health: Health = _healthy,
    ) -> None:
        self._bound = bound
        self._certificates = certificates
        self._access = access
        self.port: int = bound.getsockname()[1]
        # In this order: errors of authentication and authorization become answers as well.
        application = web.Application(middlewares=[self._answer, self._admit])
        application.add_routes(NodePages(node_name, pods, runtime, metrics=metrics, health=health).routes())
        application.add_routes(StreamPages(pods, runtime, clock).routes())
        # A handler whose client went away is cancelled: a log that nobody reads is not followed for ever.
        self._runner = web.AppRunner(
            application, handler_cancellation=True, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS
        )
        self._tasks: set[asyncio.Task[object]] = set()
        self._clock = clock
        self._renewal: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        try:
            context = self._certificates.context()
            await self._runner.setup()
            await web.SockSite(self._runner, self._bound, ssl_context=context).start()
            renewal = CertificateRenewal(self._certificates, context, self._clock)
            self._renewal = asyncio.create_task(renewal.run(), name="certificate of the node")
        except BaseException:
            await self._runner.cleanup()
            self._bound.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._renewal is not None:
            self._renewal.cancel()
            await asyncio.gather(self._renewal, return_exceptions=True)
        # Streams never end by themselves, and the shutdown of the server would wait for them.
        for task in self._tasks:
            task.cancel()
        await self._runner.cleanup()
        self._bound.close()

    @web.middleware
    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Errors become answers; streams are known, so that they can be ended."""
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
        try:
            return await handler(request)
        except NodeRequestError as error:
            return web.Response(status=error.code, text=str(error))
        except DrakitError as error:
            log.warning("%s %s: %s", request.method, request.path, error)
            return web.Response(status=500, text=str(error))
        finally:
            if task is not None:
                self._tasks.discard(task)

    @web.middleware
    async def _admit(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        user = await self._access.authentication.user(
            _peer_certificate(request), request.headers.get("Authorization", "")
        )
        if user is None:
            raise NodeRequestError(401, "Unauthorized")
        if refusal := await self._access.authorization.refusal(user, request.method, request.path):
            log.info("%s %s: %s", request.method, request.path, refusal)
            raise NodeRequestError(403, refusal)
        return await handler(request)


def _peer_certificate(request: web.Request) -> bytes | None:
    transport = request.transport
    connection: ssl.SSLObject | None = transport.get_extra_info("ssl_object") if transport is not None else None
    return connection.getpeercert(binary_form=True) if connection is not None else None
