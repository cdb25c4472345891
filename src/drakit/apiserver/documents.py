"""The OpenAPI v3 documents over HTTP: an index, and a document per group and version.

In:  GET `/openapi/v3` and the addresses that stand in its index.
Out: documents made on first use and kept; with the right hash in the query they may be cached for good.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import msgspec

from drakit.api.exchange import JSON, Raw, Request, Response
from drakit.apiserver.negotiation import negotiate
from drakit.apiserver.serving import Served

_FOREVER = ("cache-control", "public, max-age=31536000")
_EMPTY = Response(code=404, content=Raw(b""), content_type="text/plain; charset=utf-8")


class OpenAPIPages:
    def __init__(self, served: Served) -> None:
        self._served = served
        self._pages: dict[str, tuple[bytes, str]] = {}

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
        body, tag = self._document(group_version)
        response = _tagged(request, body, tag)
        if request.parameter("hash") == tag.strip('"'):
            return msgspec.structs.replace(response, headers=(*response.headers, _FOREVER))
        return response

    def _document(self, group_version: str) -> tuple[bytes, str]:
        made = self._pages.get(group_version)
        if made is None:
            group, _, version = group_version.rpartition("/")
            from drakit.apiserver import openapi

            made = self._pages[group_version] = _encoded(openapi.document(group, version))
        return made

    @cached_property
    def _index(self) -> tuple[bytes, str]:
        from drakit.apiserver import openapi

        return _encoded(openapi.index(self._group_versions))

    @property
    def _group_versions(self) -> Sequence[str]:
        return tuple(self._served)


def _encoded(document: Any) -> tuple[bytes, str]:
    body = msgspec.json.encode(document)
    return body, f'"{hashlib.sha512(body).hexdigest().upper()}"'


def _tagged(request: Request, body: bytes, tag: str) -> Response:
    headers = (("etag", tag), ("vary", "Accept"))
    if tag in request.headers.get("if-none-match", ""):
        return Response(code=304, content=Raw(b""), headers=headers)
    return Response(content=Raw(body), content_type=JSON, headers=headers)
