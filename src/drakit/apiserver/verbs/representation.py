"""Show objects in the form that the client accepts.

In:  objects, lists and watches, and the negotiated representation.
Out: responses with the objects themselves, a Table of them, or their metadata alone; in JSON, YAML or protobuf.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from drakit.api.codec.protobuf import CONTENT_TYPE as PROTOBUF
from drakit.api.codec.protobuf import encode_frame, encode_protobuf
from drakit.api.exchange import JSON, Content, Document, OneObject, Raw, Response, StatusContent
from drakit.api.text.yamldump import dump_yaml, sorted_keys
from drakit.apiserver import tables
from drakit.apiserver.admission.criteria.worker import LARGE
from drakit.apiserver.failures import ApiError
from drakit.apiserver.requests.negotiation import YAML, Representation, negotiate
from drakit.apiserver.storage.objects import ObjectContent, StoredObject
from drakit.apiserver.verbs.context import ApiCall, ServerContext
from drakit.apiserver.verbs.read import ListContent
from drakit.apiserver.verbs.watch import ObjectStream, encode_line
from drakit.base.status import ListMeta, Status

_WATCH_TYPES = {JSON: JSON, YAML: JSON, PROTOBUF: f"{PROTOBUF};stream=watch"}


class ProtobufContent(Content):
    """Another content in the protobuf form."""

    __slots__ = ("content",)

    def __init__(self, content: ObjectContent | ListContent | Document | StatusContent) -> None:
        self.content = content

    def encode(self) -> bytes:
        match self.content:
            case Document():
                return encode_protobuf(self.content.document)
            case StatusContent():
                return encode_protobuf(msgspec.to_builtins(self.content.status))
            case content:
                return content.encode_protobuf()


def in_accepted_form(response: Response, accept: str) -> Response:
    """A response with a Status or a document of discovery: in protobuf, if the client likes that best."""
    content = response.content
    if PROTOBUF not in accept or not isinstance(content, Document | StatusContent):
        return response
    try:
        media_type = negotiate(accept, objects=False, protobuf=True).media_type
    except ApiError:
        return response
    return _protobuf(response, content) if media_type == PROTOBUF else response


def _protobuf(response: Response, content: ObjectContent | ListContent | Document | StatusContent) -> Response:
    return msgspec.structs.replace(response, content=ProtobufContent(content), content_type=PROTOBUF)


class EncodedDocument(Document):
    """A document with its JSON."""

    __slots__ = ("_json",)

    def __init__(self, document: Mapping[str, Any]) -> None:
        super().__init__(document)
        self._json = super().encode()

    def encode(self) -> bytes:
        return self._json


_WRITABLE = (ObjectContent, ListContent, Document, StatusContent)
_ROW_WEIGHT = 256
"""Bytes that an object of a table counts: 512 of them are worked on beside the loop."""
_YAML_WEIGHT = 16
"""YAML takes a microsecond per byte, more than anything else that is done with an object."""


def _weight(content: Content) -> int:
    """Bytes, about, without making them."""
    if isinstance(content, ObjectContent):
        return content.stored.size
    if isinstance(content, ListContent):
        return sum(stored.size for stored in content.objects)
    return len(content.encode()) if isinstance(content, EncodedDocument) else 0


class Presenter:
    """Turns the results of one request into responses."""

    def __init__(self, call: ApiCall, wanted: Representation, context: ServerContext) -> None:
        self._call = call
        self._wanted = wanted
        self._context = context
        self._include = tables.METADATA
        if wanted.transform == "Table":
            self._include = tables.check_include_object(call.request.parameter("includeObject"))

    def object(self, stored: StoredObject, code: int = 200) -> Response:
        return self._respond(self._shown(stored), code)

    async def list(self, found: ListContent) -> Response:
        wanted = self._wanted
        if wanted.media_type == PROTOBUF and not wanted.transform:
            await found.make_messages()
        if wanted.transform == "Table":
            return self._respond(await self._beside(found, self._table, found.objects, found.metadata), 200)
        if wanted.metadata_only:
            return self._respond(await self._beside(found, self._metadata_list, found), 200)
        if wanted.media_type == JSON:
            await found.make_bodies()
        return self._respond(found, 200)

    async def finished(self, response: Response) -> Response:
        """The response in the form that takes long to make, made beside the loop if it is large."""
        content, beside = response.content, self._context.beside
        if isinstance(content, ProtobufContent) and isinstance(content.content, ObjectContent):
            if content.content.stored.size >= LARGE:
                await beside(content.content.stored.size, content.content.encode_protobuf)
        elif response.content_type == YAML and isinstance(content, _WRITABLE):
            made = await beside(_YAML_WEIGHT * _weight(content), _as_yaml, content)
            return msgspec.structs.replace(response, content=made)
        return response

    async def _beside(self, found: ListContent, make: Callable[..., Mapping[str, Any]], *args: Any) -> Document:
        """A document that is made of many objects, and its JSON with it."""
        weight = _ROW_WEIGHT * len(found.objects)
        return await self._context.beside(weight, lambda: EncodedDocument(make(*args)))

    def watch(self, stream: ObjectStream) -> Response:
        if self._wanted.transform == "Table":
            empty = self._table([], ListMeta(), headers=False)
            stream.encode_with(self._table_events(), empty)
        elif self._wanted.metadata_only:
            # Bookmarks must have the type of the events, or clients fail to decode them.
            mark: dict[str, object] = {"kind": "PartialObjectMetadata", "apiVersion": self._meta_version}
            encode = self._encode_event
            stream.encode_with(lambda type_, stored: encode(type_, self._metadata(stored)), mark)
        elif self._wanted.media_type == PROTOBUF:
            stream.encode_with(lambda type_, stored: stored.frame(self._call.version, type_))
        stream.encode_documents_with(self._encode_event)
        content_type = _WATCH_TYPES[self._wanted.media_type]
        return Response(content=stream, content_type=content_type, warnings=tuple(self._call.warnings))

    def status(self, done: Status, code: int) -> Response:
        return self._respond(StatusContent(done), code)

    def document(self, document: Mapping[str, Any], code: int = 200) -> Response:
        """A response with something that is not stored: a review, a scale."""
        return self._respond(Document(document), code)

    @property
    def _meta_version(self) -> str:
        return f"meta.k8s.io/{self._wanted.version}"

    def _shown(self, stored: StoredObject) -> ObjectContent | Document:
        if self._wanted.transform == "Table":
            meta = ListMeta(resource_version=str(stored.revision) if stored.revision else "")
            return Document(self._table([stored], meta))
        if self._wanted.metadata_only:
            return Document(self._metadata(stored))
        return ObjectContent(stored, self._call.version)

    @property
    def _encode_event(self) -> Callable[[str, Mapping[str, Any]], bytes]:
        return _frame if self._wanted.media_type == PROTOBUF else encode_line

    def _respond(self, content: ObjectContent | ListContent | Document | StatusContent, code: int) -> Response:
        warnings = tuple(self._call.warnings)
        if self._wanted.media_type == PROTOBUF:
            return _protobuf(Response(code=code, content=content, warnings=warnings), content)
        if self._wanted.media_type == YAML:
            return Response(code=code, content=content, content_type=YAML, warnings=warnings)  # see `finished`
        return Response(code=code, content=content, content_type=JSON, warnings=warnings)

    def _table(self, stored: Sequence[StoredObject], meta: ListMeta, *, headers: bool = True) -> dict[str, Any]:
        return tables.render(
            self._call.kind.kind,
            [each.document_in(self._call.version) for each in stored],
            now=self._context.now(),
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
            return encode_line(type_, table)

        return encode

    def _metadata(self, stored: StoredObject) -> dict[str, Any]:
        return tables.partial_metadata(stored.document, self._wanted.version)

    def _metadata_list(self, found: ListContent) -> dict[str, Any]:
        return {
            "kind": "PartialObjectMetadataList",
            "apiVersion": self._meta_version,
            "metadata": msgspec.to_builtins(found.metadata),
            # No items are null here, and an empty list elsewhere: as upstream.
            "items": [self._metadata(stored) for stored in found.objects] or None,
        }


def _frame(type_: str, document: Mapping[str, Any]) -> bytes:
    return encode_frame(type_, encode_protobuf(document))


def _as_yaml(content: Content) -> Content:
    document = content.document if isinstance(content, OneObject | Document) else msgspec.json.decode(content.encode())
    return Raw(dump_yaml(sorted_keys(document)).encode())
