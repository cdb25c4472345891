"""The OpenAPI documents over HTTP: v3 with an index and a document per group and version; v2 without kinds.

In:  GET `/openapi/v3` and the paths in its index; GET `/openapi/v2`.
Out: documents, made on first use. With the right hash in the query, clients may cache them for ever.

kubectl validates a `kind: List` by v2 even if there is v3, and fails without it. It skips kinds that v2 does not have,
and the server validates each item anyway: so a v2 document without kinds suffices.
"""

from __future__ import annotations

import hashlib
from functools import cached_property

import msgspec

from drakit.api.exchange import JSON, Raw, Request, Response
from drakit.api.release import KUBERNETES
from drakit.apiserver import openapi
from drakit.apiserver.kinds.served import Served
from drakit.apiserver.requests.negotiation import negotiate

TITLE = "Kubernetes"
V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_V2_ASKED = (V2_PROTOBUF, V2_PROTOBUF.replace("v2.v1", "v2@v1"))
"""kubectl asks for the first name, which is no valid media type, and accepts only the second one."""
_FOREVER = ("cache-control", "public, max-age=31536000")
_EMPTY = Response(code=404, content=Raw(b""), content_type="text/plain; charset=utf-8")


class OpenAPIPages:
    """Answers the paths below `/openapi`."""

    def __init__(self, served: Served) -> None:
        self._served = served

    def second(self, request: Request) -> Response:
        """Answer `/openapi/v2`, in protobuf if the client accepts that."""
        accept = request.headers.get("accept", "")
        if any(name in accept for name in _V2_ASKED):
            return _tagged(request, *self._v2_protobuf, content_type=V2_PROTOBUF)
        negotiate(accept, objects=False)
        return _tagged(request, *self._v2_json)

    def answer(self, request: Request) -> Response:
        """Answer `/openapi/v3` and the paths below it."""
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
        return _with_tag(msgspec.json.encode(openapi.index(tuple(self._served))))

    @cached_property
    def _v2_json(self) -> tuple[bytes, str]:
        about = {"title": TITLE, "version": KUBERNETES}
        return _with_tag(msgspec.json.encode({"swagger": "2.0", "info": about, "paths": {}}))

    @cached_property
    def _v2_protobuf(self) -> tuple[bytes, str]:
        """The same in protobuf: 1 is `swagger`, 2 `info` (1 its title, 2 its version), 8 `paths`."""
        about = _chunk(1, TITLE.encode()) + _chunk(2, KUBERNETES.encode())
        return _with_tag(_chunk(1, b"2.0") + _chunk(2, about) + _chunk(8, b""))


def _chunk(number: int, value: bytes) -> bytes:
    """A protobuf field of wire type 2 (text or message), shorter than 128 bytes."""
    return bytes((number << 3 | 2, len(value))) + value


def _with_tag(body: bytes) -> tuple[bytes, str]:
    return body, f'"{hashlib.sha512(body).hexdigest().upper()}"'


def _tagged(request: Request, body: bytes, tag: str, *, content_type: str = JSON) -> Response:
    headers = (("etag", tag), ("vary", "Accept"))
    if tag in request.headers.get("if-none-match", ""):
        return Response(code=304, content=Raw(b""), headers=headers)
    return Response(content=Raw(body), content_type=content_type, headers=headers)
