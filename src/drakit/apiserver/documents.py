"""The OpenAPI v3 documents over HTTP: an index, and a document per group and version.

In:  GET `/openapi/v3` and the addresses that stand in its index.
Out: documents made on first use and kept; with the right hash in the query they may be cached for good.
"""

from __future__ import annotations

import hashlib
from functools import cached_property

import msgspec

from drakit.api.exchange import JSON, Raw, Request, Response
from drakit.apiserver import openapi
from drakit.apiserver.negotiation import negotiate
from drakit.apiserver.serving import Served

_FOREVER = ("cache-control", "public, max-age=31536000")
_EMPTY = Response(code=404, content=Raw(b""), content_type="text/plain; charset=utf-8")


class OpenAPIPages:
    def __init__(self, served: Served) -> None:
        self._served = served

    def answer(self, request: Request) -> Response:
        parts = [part for part in request.path.split("/") if part][2:]
        match parts:
            case []:
                negotiate(request.headers.get("accept", ""), objects=False)
                return _tagged(request, *self._index)
            case ["api", version] if version in self._served:
                return self._page(request, version)
            case ["apis", group, version] if f"{group}/{version}" in self._served:
                return self._page(request, f"{group}/{version}")
        return _EMPTY

    def _page(self, request: Request, group_version: str) -> Response:
        body, digest = openapi.encoded(group_version)
        response = _tagged(request, body, f'"{digest}"')
        if request.parameter("hash") == digest:
            return msgspec.structs.replace(response, headers=(*response.headers, _FOREVER))
        return response

    @cached_property
    def _index(self) -> tuple[bytes, str]:
        body = msgspec.json.encode(openapi.index(tuple(self._served)))
        return body, f'"{hashlib.sha512(body).hexdigest().upper()}"'


def _tagged(request: Request, body: bytes, tag: str) -> Response:
    headers = (("etag", tag), ("vary", "Accept"))
    if tag in request.headers.get("if-none-match", ""):
        return Response(code=304, content=Raw(b""), headers=headers)
    return Response(content=Raw(body), content_type=JSON, headers=headers)
