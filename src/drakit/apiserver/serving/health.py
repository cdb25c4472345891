"""Health: `/healthz`, `/livez`, `/readyz`, and each check by itself below them.

In:  named checks; some are of readiness alone.
Out: `ok`, or the list of checks with their results: which part is not ready, and why.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from drakit.api.exchange import Raw, Request, Response

Check = Callable[[], Awaitable[None]]
"""Returns when the check passes, raises when it fails."""

PATHS = ("healthz", "livez", "readyz")
_TEXT = "text/plain; charset=utf-8"


class Health:
    def __init__(self, checks: Mapping[str, Check], readiness: Mapping[str, Check] | None = None) -> None:
        """`readiness` has checks that a server fails that must not be restarted for it: it is not ready yet."""
        self._alive = checks
        self._ready = {**checks, **(readiness or {})}

    async def answer(self, request: Request) -> Response | None:
        """The answer to a health path; None for any other path."""
        parts = [part for part in request.path.split("/") if part]
        if not parts or parts[0] not in PATHS:
            return None
        checks = self._ready if parts[0] == "readyz" else self._alive
        if len(parts) > 1:
            return await self._one(checks, parts[0], "/".join(parts[1:]))
        excluded = set(request.parameters("exclude"))
        results = {name: await _run(check) for name, check in checks.items() if name not in excluded}
        bad = [name for name, problem in results.items() if problem]
        verbose = any(key == "verbose" for key, _ in request.query)
        if not bad and not verbose:
            return _text("ok")
        lines = [f"[-]{name} failed: {problem}" if problem else f"[+]{name} ok" for name, problem in results.items()]
        lines += [f"[+]{name} excluded: ok" for name in checks if name in excluded]
        lines.append(f"{parts[0]} check {'failed' if bad else 'passed'}")
        return _text("\n".join(lines) + "\n", 500 if bad else 200)

    async def _one(self, checks: Mapping[str, Check], path: str, name: str) -> Response | None:
        if name not in checks:
            return None
        problem = await _run(checks[name])
        return _text(f"{path} check failed: {problem}\n", 500) if problem else _text("ok")


async def _run(check: Check) -> str:
    try:
        await check()
    except Exception as error:
        return str(error) or type(error).__name__
    return ""


def _text(text: str, code: int = 200) -> Response:
    headers = (("cache-control", "no-cache, private"), ("x-content-type-options", "nosniff"))
    return Response(code=code, content=Raw(text.encode()), content_type=_TEXT, headers=headers)
