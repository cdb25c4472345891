"""Send a request, again where that is safe, and pass on what the server warns of.

In:  a request.
Out: the answer to it, whatever its code.

Safe is: what the server turned away untouched (429 says so, and when to come back), and a read whose connection broke.
A write whose connection broke may have been done: the caller must look.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import msgspec

from drakit.api.exchange import Request, Response
from drakit.base.clock import Clock
from drakit.client.failures import ConnectionFailed
from drakit.client.transport.transports import Transport
from drakit.client.verbosity import V

log = logging.getLogger("drakit.client")

TRIES = 10
_LONGEST_WAIT = 60.0
_REMEMBERED = 1000
_SHOWN = 2000
"""Bytes of a body that a log has room for."""


class Sender:
    def __init__(self, transport: Transport, clock: Clock, on_warning: Callable[[str], None] | None) -> None:
        self._transport = transport
        self._clock = clock
        self._on_warning = on_warning or self._log_once
        self._told: set[str] = set()

    async def send(self, request: Request) -> Response:
        broken = False
        for attempt in range(TRIES):
            try:
                response = await self._transport.handle(request)
            except ConnectionFailed:
                # A write may have been done although no answer came: only its caller can find out. One retry for a
                # read: the server may have closed a kept connection.
                if broken or request.method not in ("GET", "HEAD"):
                    raise
                broken = True
                continue
            wait = retry_after(response) if response.code == 429 else None
            if wait is None or attempt == TRIES - 1:
                break
            wait = min(wait, _LONGEST_WAIT)
            log.log(V[4], "%s %s: the server is busy, waiting %.0f s", request.method, request.path, wait)
            await self._clock.sleep(wait)
        if log.isEnabledFor(V[6]):
            _tell(request, response)
        for text in response.warnings:
            self._on_warning(text)
        return response

    def _log_once(self, text: str) -> None:
        if text not in self._told and len(self._told) < _REMEMBERED:
            self._told.add(text)
            log.warning("%s", text)


def _tell(request: Request, response: Response) -> None:
    log.log(V[6], "%s %s %d", request.method, request.path, response.code)
    if not log.isEnabledFor(V[7]) or not (request.body or request.document is not None):
        return
    secret = "/secrets" in request.path or request.path.endswith("/token")
    body = request.body or msgspec.json.encode(request.document, enc_hook=str)
    shown = "of a secret" if secret else body[:_SHOWN].decode(errors="replace")
    log.log(V[7], "%s %s: body %s", request.method, request.path, shown)


def retry_after(response: Response) -> float | None:
    """When the server wants to be asked again, in seconds, if it says so."""
    text = next((value for name, value in response.headers if name == "retry-after"), "")
    return float(text) if text.isdecimal() else None
