"""A server that does not always answer as it should: what stands between components and it.

In:  requests of components; troubles that somebody has asked for.
Out: the server's answers, or failures that a client meets in real life.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from drakit.api.exchange import Handler, Request, Response, StatusContent
from drakit.base.clock import Clock
from drakit.base.status import StatusDetails, failure
from drakit.client import ConnectionFailed

_WRITES = ("POST", "PUT", "PATCH", "DELETE")
_REASONS = {403: "Forbidden", 409: "Conflict", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable"}


@dataclass(slots=True)
class Trouble:
    """`times` requests that `concerns` picks are answered with `code`."""

    code: int
    times: int
    concerns: Callable[[Request], bool]


def failure_of(code: int) -> Response:
    """What a server answers that cannot, or will not, right now."""
    details = StatusDetails(retry_after_seconds=1) if code == 429 else None
    reason = _REASONS.get(code, "InternalError")
    return Response(code=code, content=StatusContent(failure(code, reason, f"a simulated {reason}", details)))


class TroubledServer:
    """Answers as the server in it does, unless there is trouble."""

    def __init__(self, inner: Handler, clock: Clock) -> None:
        self._inner = inner
        self._clock = clock
        self._away_until = 0.0
        self.troubles: list[Trouble] = []

    def go_away(self, seconds: float) -> None:
        """Nobody answers for that long. Watches that are open stay so, as they do behind a proxy."""
        self._away_until = self._clock.monotonic() + seconds

    def fail_writes(self, code: int, times: int, resource: str = "") -> None:
        """The next writes of components (to a resource by its plural name, or to any) are answered with the code."""

        def concerns(request: Request) -> bool:
            return request.method in _WRITES and (not resource or resource in request.path.split("/"))

        self.troubles.append(Trouble(code, times, concerns))

    async def handle(self, request: Request) -> Response:
        if self._clock.monotonic() < self._away_until:
            raise ConnectionFailed("the API server does not answer", sent=False)
        for each in self.troubles:
            if each.times > 0 and each.concerns(request):
                each.times -= 1
                return failure_of(each.code)
        return await self._inner.handle(request)
