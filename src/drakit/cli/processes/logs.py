"""Where log messages go, and which: `-v` 0 to 7.

In:  the number of the flag; requests that somebody else answers.
Out: lines on standard error, with time, level and room; at 6, one for each request that came in.
"""

from __future__ import annotations

import logging

from drakit.api.exchange import Handler, Request, Response
from drakit.client.verbosity import V, set_verbosity

log = logging.getLogger("drakit.cli")

_FORM = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def log_to_stderr(verbosity: int) -> None:
    """Warnings and errors always; of everything else what `-v` lets through."""
    logging.basicConfig(format=_FORM)
    set_verbosity(verbosity)


def note_warning(text: str) -> None:
    """What a server says to a component of ours about a version that is the newest it has: nobody can do anything."""
    log.log(V[3], "the server warns: %s", text)


class Logged:
    """Answers as the handler in it does, and tells."""

    def __init__(self, inner: Handler) -> None:
        self.inner = inner

    async def handle(self, request: Request) -> Response:
        response = await self.inner.handle(request)
        log.log(V[6], "%s %s %d", request.method, request.path, response.code)
        return response
