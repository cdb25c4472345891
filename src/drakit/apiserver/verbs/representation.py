"""Show objects in the form that the client accepts.

In:  objects, lists and watches, and the negotiated representation.
Out: responses with the objects themselves, a Table of them, or their metadata alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from drakit.api.exchange import JSON, Content, Document, OneObject, Raw, Response
from drakit.api.text.yamldump import dump_yaml
from drakit.apiserver import tables
from drakit.apiserver.requests.negotiation import YAML, Representation
from drakit.apiserver.storage.objects import ObjectContent, StoredObject
from drakit.apiserver.verbs.context import ApiCall
from drakit.apiserver.verbs.read import ListContent
from drakit.apiserver.verbs.watch import ObjectStream
from drakit.base.status import ListMeta

_WATCH_TYPE = "application/json"


class Presenter:
    """Turns the results of one request into responses."""

    def __init__(self, call: ApiCall, wanted: Representation, now: Callable[[], datetime]) -> None:
        self._call = call
        self._wanted = wanted
        self._now = now
        self._include = tables.METADATA
        if wanted.transform == "Table":
            self._include = tables.check_include_object(call.request.parameter("includeObject"))

    def object(self, stored: StoredObject, code: int = 200) -> Response:
        return self._respond(self._shown(stored), code)

    def list(self, found: ListContent) -> Response:
        wanted = self._wanted
        if wanted.transform == "Table":
            return self._respond(Document(self._table(found.objects, found.metadata)), 200)
        if wanted.metadata_only:
            return self._respond(Document(self._metadata_list(found)), 200)
        return self._respond(found, 200)

    def watch(self, stream: ObjectStream) -> Response:
        if self._wanted.transform == "Table":
            empty = self._table([], ListMeta(), headers=False)
            stream.encode_with(self._table_events(), empty)
        elif self._wanted.metadata_only:
            # Bookmarks must have the type of the events, or clients fail to decode them.
            mark: dict[str, object] = {"kind": "PartialObjectMetadata", "apiVersion": self._meta_version}
            stream.encode_with(lambda type_, stored: _line(type_, self._metadata(stored)), mark)
        return Response(content=stream, content_type=_WATCH_TYPE, warnings=tuple(self._call.warnings))

    def document(self, document: Mapping[str, Any], code: int = 200) -> Response:
        """A response with something that is not stored: a review, a scale."""
        return self._respond(Document(document), code)

    @property
    def _meta_version(self) -> str:
        return f"meta.k8s.io/{self._wanted.version}"

    def _shown(self, stored: StoredObject) -> Content:
        if self._wanted.transform == "Table":
            meta = ListMeta(resource_version=str(stored.revision) if stored.revision else "")
            return Document(self._table([stored], meta))
        if self._wanted.metadata_only:
            return Document(self._metadata(stored))
        return ObjectContent(stored, self._call.version)

    def _respond(self, content: Content, code: int) -> Response:
        warnings = tuple(self._call.warnings)
        if self._wanted.media_type == YAML:
            return Response(code=code, content=_as_yaml(content), content_type=YAML, warnings=warnings)
        return Response(code=code, content=content, content_type=JSON, warnings=warnings)

    def _table(self, stored: Sequence[StoredObject], meta: ListMeta, *, headers: bool = True) -> dict[str, Any]:
        return tables.render(
            self._call.kind.kind,
            [each.document_in(self._call.version) for each in stored],
            now=self._now(),
            include_object=self._include,
            metadata=msgspec.to_builtins(meta),
            version=self._wanted.version,
            headers=headers,
        )

    def _table_events(self) -> Callable[[str, StoredObject], bytes]:
        """Encode events as tables. Only the first one has the columns, as clients expect."""
        first = True

        def encode(type_: str, stored: StoredObject) -> bytes:
            nonlocal first
            table = self._table([stored], ListMeta(resource_version=str(stored.revision)), headers=first)
            first = False
            return _line(type_, table)

        return encode

    def _metadata(self, stored: StoredObject) -> dict[str, Any]:
        return tables.partial_metadata(stored.document, self._wanted.version)

    def _metadata_list(self, found: ListContent) -> dict[str, Any]:
        return {
            "kind": "PartialObjectMetadataList",
            "apiVersion": self._meta_version,
            "metadata": msgspec.to_builtins(found.metadata),
            "items": [self._metadata(stored) for stored in found.objects],
        }


def _line(type_: str, document: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode({"type": type_, "object": document}) + b"\n"


def _as_yaml(content: Content) -> Content:
    document = content.document if isinstance(content, OneObject | Document) else msgspec.json.decode(content.encode())
    return Raw(dump_yaml(dict(document)).encode())
