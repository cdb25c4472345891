"""What a component shows of itself: `/metrics`, `/healthz`, `/livez`, `/readyz`, on a port of its own.

In:  a registry, and named checks of health and of readiness.
Out: a handler of requests. It has no secrets and asks nobody who they are: it is for the own machine.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping

from prometheus_client import CollectorRegistry, disable_created_metrics, generate_latest

from drakit.api.exchange import JSON, Raw, Request, Response
from drakit.apiserver.http.listener import bind
from drakit.apiserver.metrics import CONTENT_TYPE
from drakit.apiserver.serving.health import Check, Health
from drakit.base.errors import Unavailable

_NOT_FOUND = Response(code=404, content=Raw(b"404 page not found\n"), content_type="text/plain; charset=utf-8")
_READY = "/readyz"


def hide_creation_times() -> None:
    """Without the times at which metrics were made, which the library adds and Kubernetes does not show."""
    disable_created_metrics()  # type: ignore[no-untyped-call]


class Diagnostics:
    def __init__(
        self,
        registry: CollectorRegistry,
        *,
        health: Mapping[str, Check],
        ready: Mapping[str, Check],
        resources: CollectorRegistry | None = None,
        documents: Mapping[str, Callable[[], bytes]] | None = None,
    ) -> None:
        """What is ready is healthy too: `ready` is what comes on top. `resources` are shown on a page of their own.

        `documents` are pages in JSON, by their path.
        """
        self._pages = {"/metrics": registry, **({"/metrics/resources": resources} if resources is not None else {})}
        self._documents = documents or {}
        self._health = Health(health)
        self._ready = Health({**health, **ready})

    async def handle(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            return _NOT_FOUND
        path = request.path.rstrip("/")
        page, document = self._pages.get(path), self._documents.get(path)
        if page is not None:
            return Response(content=Raw(generate_latest(page)), content_type=CONTENT_TYPE)
        if document is not None:
            return Response(content=Raw(document()), content_type=JSON)
        asked = self._ready if request.path.startswith(_READY) else self._health
        return await asked.answer(request) or _NOT_FOUND


def bind_port(address: str, port: int) -> socket.socket:
    try:
        return bind(address, port)
    except OSError as error:
        raise Unavailable(f"cannot listen on {address}:{port}: {error}") from None


def url_of(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
