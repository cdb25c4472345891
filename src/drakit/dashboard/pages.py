"""The static files of the page, from the package, and the security headers of every answer.

In:  the name of a file.
Out: a response. No file is read that is not listed here.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

import msgspec

from drakit.api.exchange import Raw, Request, Response

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_POLICY = "; ".join(
    (
        "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:", "connect-src 'self'",
        "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
    )
)  # fmt: skip
SECURITY = (
    ("content-security-policy", _POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
)


def guarded(response: Response) -> Response:
    """Add the security headers that every answer of the dashboard has."""
    return msgspec.structs.replace(response, headers=(*response.headers, *SECURITY))


def page(name: str, request: Request) -> Response | None:
    """A file of the page; None if there is none of that name."""
    found = _files().get(name)
    if found is None:
        return None
    data, tag, content_type = found
    headers = (("etag", tag), ("cache-control", "no-cache"))
    if request.headers.get("if-none-match") == tag:
        return Response(code=304, content=Raw(b""), headers=headers)
    return Response(content=Raw(data), content_type=content_type, headers=headers)


@cache
def _files() -> dict[str, tuple[bytes, str, str]]:
    """Bytes, ETag and content type of each file by its name. The files are small, and are read once."""
    root = files("drakit.dashboard") / "static"
    found: dict[str, tuple[bytes, str, str]] = {}
    for folder, prefix in ((root, ""), (root / "vendor", "vendor/"), (root / "views", "views/")):
        for each in folder.iterdir():
            ending = "." + each.name.rpartition(".")[2]
            if ending in _TYPES:
                data = each.read_bytes()
                tag = '"' + hashlib.sha256(data).hexdigest()[:16] + '"'
                found[prefix + each.name] = (data, tag, _TYPES[ending])
    return found
