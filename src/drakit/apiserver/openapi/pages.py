"""The OpenAPI documents over HTTP: v3 with an index and a document per group and version; v2 with everything in one.

In:  GET `/openapi/v3` and the paths in its index; GET `/openapi/v2`.
Out: documents, made on first use. With the right hash in the query, clients may cache them for ever.
"""

from __future__ import annotations

import hashlib
from functools import cached_property, partial

import msgspec

from drakit.api.exchange import JSON, Raw, Request, Response
from drakit.apiserver import openapi
from drakit.apiserver.admission.criteria.worker import Worker
from drakit.apiserver.kinds.served import Served
from drakit.apiserver.requests.negotiation import negotiate

V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_V2_ASKED = (V2_PROTOBUF, V2_PROTOBUF.replace("v2.v1", "v2@v1"))
"""kubectl asks for the first name, which is no valid media type, and accepts only the second one."""
_FOREVER = ("cache-control", "public, max-age=31536000")
_EMPTY = Response(code=404, content=Raw(b""), content_type="text/plain; charset=utf-8")


class OpenAPIPages:
    """Answers the paths below `/openapi`.

    To make a document of the whole API takes up to a quarter of a second, once. The worker does it, beside the loop.
    """

    def __init__(self, served: Served, worker: Worker) -> None:
        self._served = served
        self._worker = worker

    async def second(self, request: Request) -> Response:
        """Answer `/openapi/v2`, in protobuf if the client accepts that."""
        accept = request.headers.get("accept", "")
        if any(name in accept for name in _V2_ASKED):
            return _tagged(request, *await self._made("_v2_protobuf"), content_type=V2_PROTOBUF)
        negotiate(accept, objects=False)
        return _tagged(request, *await self._made("_v2_json"))

    async def _made(self, name: str) -> tuple[bytes, str]:
        """A cached property of this object, made in the thread if it is asked for the first time."""
        made: tuple[bytes, str] | None = self.__dict__.get(name)
        return made if made is not None else await self._worker.call(partial(getattr, self, name))

    async def answer(self, request: Request) -> Response:
        """Answer `/openapi/v3` and the paths below it."""
        parts = [part for part in request.path.split("/") if part][2:]
        match parts:
            case []:
                negotiate(request.headers.get("accept", ""), objects=False)
                return _tagged(request, *await self._made("_index"))
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
        return _with_tag(msgspec.json.encode(openapi.swagger(self._served)))

    @cached_property
    def _v2_protobuf(self) -> tuple[bytes, str]:
        return _with_tag(openapi.encode_swagger(openapi.swagger(self._served)))


def _with_tag(body: bytes) -> tuple[bytes, str]:
    return body, f'"{hashlib.sha512(body).hexdigest().upper()}"'


def _tagged(request: Request, body: bytes, tag: str, *, content_type: str = JSON) -> Response:
    headers = (("etag", tag), ("vary", "Accept"))
    if tag in request.headers.get("if-none-match", ""):
        return Response(code=304, content=Raw(b""), headers=headers)
    return Response(content=Raw(body), content_type=content_type, headers=headers)
