"""Objects as the server keeps them: one write, decoded once and encoded once per version, shared by all readers.

In:  records of the store, whose value is the whole object as JSON in its storage version, without resourceVersion.
Out: documents, structs and bytes with resourceVersion.

The storage form begins with kind, apiVersion and metadata, in that order: so the bytes of a read are the bytes of the
store with one piece put in, and an item of a list is the same without its head.

Invariant: nobody changes a document that a StoredObject hands out. Readers and later writes share its parts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec
from msgspec.structs import replace

from drakit.api.codec.protobuf import encode_envelope, encode_frame, encode_message, encode_stored
from drakit.api.codec.specs import SPECS
from drakit.api.exchange import OneObject
from drakit.api.objects.meta import ObjectMeta
from drakit.api.objects.partial import Partial
from drakit.api.objects.plain import Plain
from drakit.api.registry import Kind
from drakit.api.schemas.compiler import shape_of
from drakit.api.versions.conversion import from_internal
from drakit.apiserver.failures import ApiError, internal
from drakit.apiserver.kinds.events import CORE, from_core
from drakit.apiserver.patching.entries import Owners, read_owners
from drakit.base.structs import Model

_METADATA = b'"metadata":{'
_SPACED_PARAMETERS = b',"opaque":"loose"}'
"""Ends the stored value of an object whose opaque parameters had spaces between tokens. Part of the file format."""
_DAMAGED = "the stored value of {key} is damaged: {error}; `drakit store remove` takes it out of a stopped server"
_KEPT_BODY = 32 * 1024
_NO_LABELS: Mapping[str, str] = {}


def encode_document(document: Mapping[str, Any]) -> bytes:
    """JSON. Opaque parameters may hold integers beyond 64 bits, which only the standard library encodes."""
    try:
        return msgspec.json.encode(document)
    except OverflowError:
        return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def decode_document(value: bytes) -> Plain:
    document: Plain = msgspec.json.decode(value)
    return document


def storage_form(kind: Kind, document: Mapping[str, Any], *, spaced_parameters: bool = False) -> bytes:
    """The value that is stored: kind, apiVersion and metadata first, no resourceVersion."""
    metadata = dict(document["metadata"])
    metadata.pop("resourceVersion", None)
    # Twice: the first gives the order of keys, the second the values.
    head = {"kind": kind.kind, "apiVersion": kind.internal_version, "metadata": metadata}
    value = encode_document({**head, **document, **head})
    # A copy of just its length: msgspec leaves half as much again behind the text, and values are kept.
    return value[:-1] + _SPACED_PARAMETERS if spaced_parameters else memoryview(value).tobytes()


@cache
def head_of(kind: Kind, version: str) -> bytes:
    """The first bytes of an object of this kind and version on the wire."""
    start = msgspec.json.encode({"kind": kind.kind, "apiVersion": kind.group_version(version)})
    return start[:-1] + b","


class Precomputed(msgspec.Struct, frozen=True):
    """What a writer knows about the object that it stores, so that readers need not compute it again."""

    typed: Model | None = None
    """Its struct or view. The resourceVersion in it is still the old one."""
    owners: Owners | None = None


NOTHING_PRECOMPUTED = Precomputed()


class StoredObject:
    """An object as one write stored it. Invariant: all that it hands out is of `revision`, and nobody changes it."""

    __slots__ = (
        "_bodies", "_document", "_lines", "_messages", "_owners", "_typed", "_value", "fields", "key", "kind",
        "revision", "spaced_parameters",
    )  # fmt: skip

    def __init__(
        self,
        kind: Kind,
        key: str,
        value: bytes,
        revision: int,
        document: Plain | None = None,
        precomputed: Precomputed = NOTHING_PRECOMPUTED,
    ) -> None:
        self.kind = kind
        self.key = key
        self.revision = revision
        self.spaced_parameters = value.endswith(_SPACED_PARAMETERS)
        self.fields: Mapping[str, str] | None = None
        """The values that field selectors compare; None until the first selector asks."""
        self._value = value[: -len(_SPACED_PARAMETERS)] + b"}" if self.spaced_parameters else value
        self._document = document
        self._typed = versioned(precomputed.typed, revision) if precomputed.typed is not None else None
        self._owners = precomputed.owners
        self._bodies: dict[str, bytes] = {}
        self._lines: dict[tuple[str, str], bytes] = {}
        self._messages: dict[str, bytes] = {}

    @property
    def document(self) -> Plain:
        """The object in its storage version."""
        found = self._document
        if found is None:
            try:
                found = decode_document(self._value)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise internal(_DAMAGED.format(key=self.key, error=error)) from None
            if self.revision:
                found["metadata"]["resourceVersion"] = str(self.revision)
            self._document = found
        return found

    def slim(self) -> None:
        """Let go of what can be made again of the stored value. Who has it already keeps it.

        Readers may be in another thread: each property looks at its attribute once.
        """
        self._document = self._typed = self._owners = None
        self._lines = {}

    @property
    def is_readable(self) -> bool:
        """Whether the value is an object. One that begins and ends as this server writes them is."""
        # What was written or shown before need not be looked at again: lists ask this of every object.
        if self._bodies or self._document is not None:
            return True
        if self._value.startswith(head_of(self.kind, self.kind.internal)) and self._value.endswith(b"}"):
            return True
        try:
            return isinstance(self.document, dict)
        except ApiError:
            return False

    @property
    def size(self) -> int:
        """Bytes of the stored value."""
        return len(self._value)

    @property
    def metadata(self) -> Plain:
        metadata: Plain = self.document["metadata"]
        return metadata

    @property
    def name(self) -> str:
        return str(self.metadata["name"])

    @property
    def namespace(self) -> str:
        return str(self.metadata.get("namespace", ""))

    @property
    def uid(self) -> str:
        return str(self.metadata.get("uid", ""))

    @property
    def labels(self) -> Mapping[str, str]:
        labels: Mapping[str, str] = self.metadata.get("labels") or _NO_LABELS
        return labels

    @property
    def typed(self) -> Model:
        """The struct; for a kind that is modelled in part, the view."""
        found = self._typed
        if found is None:
            found = self._typed = SPECS.to_struct(self.kind.model, self.document)
        return found

    @property
    def owners(self) -> Owners:
        """Who owns which fields. Malformed managedFields count as none."""
        found = self._owners
        if found is None:
            try:
                found = read_owners(self.metadata.get("managedFields"), stored=True)
            except ValueError:
                found = {}
            self._owners = found
        return found

    @property
    def partial(self) -> Partial[Model]:
        return Partial(self.document, self.typed)

    def document_in(self, version: str) -> Plain:
        """The object in a served version, in the form of the wire."""
        if version == self.kind.internal:
            return self.document
        return convert(self.kind, self.document, version)

    def body(self, version: str) -> bytes:
        """The object's JSON after its head: from `"metadata":{` to the last brace."""
        made = self._bodies.get(version)
        if made is None:
            made = self._bodies[version] = (
                self._spliced() if version == self.kind.internal else self._converted(version)
            )
        return made

    def passing_body(self, version: str) -> bytes:
        """The same, not kept if it is long: a reader that is slow would hold a copy of every object of its list."""
        made = self._bodies.get(version)
        if made is not None:
            return made
        if len(self._value) < _KEPT_BODY or version != self.kind.internal:
            return self.body(version)
        return self._spliced()

    def body_size(self, version: str) -> int:
        """Bytes of the body, without making it if it is long."""
        made = self._bodies.get(version)
        if made is not None:  # first: lists ask this of every object, twice
            return len(made)
        head = head_of(self.kind, self.kind.internal) + _METADATA
        kept = len(self._value) < _KEPT_BODY or version != self.kind.internal
        if kept or not self._value.startswith(head) or not self.revision:
            return len(self.passing_body(version))
        return len(b'%b"resourceVersion":"%d",' % (_METADATA, self.revision)) + len(self._value) - len(head)

    def encode(self, version: str) -> bytes:
        return head_of(self.kind, version) + self.body(version)

    def line(self, version: str, event: str) -> bytes:
        """The object as an event of a watch. Encoded once, however many clients watch."""
        made = self._lines.get((version, event))
        if made is None:
            made = b'{"type":"%b","object":%b%b}\n' % (event.encode(), head_of(self.kind, version), self.body(version))
            self._lines[version, event] = made
        return made

    def message(self, version: str) -> bytes:
        """The object in the protobuf form, with its length before it: as it stands in a list."""
        made = self._messages.get(version)
        if made is None:
            group_version, kind = self.kind.group_version(version), self.kind.kind
            if version == self.kind.internal:
                made = encode_stored(group_version, kind, self._text(), lambda: self.document)
            else:
                made = encode_message(group_version, kind, self.document_in(version))
            self._messages[version] = made
        return made

    def encode_protobuf(self, version: str) -> bytes:
        return encode_envelope(self.kind.group_version(version), self.kind.kind, self.message(version))

    def frame(self, version: str, event: str) -> bytes:
        """The object as an event of a watch in the protobuf form."""
        return encode_frame(event, self.encode_protobuf(version))

    def _text(self) -> bytes:
        """The object's JSON without kind and apiVersion."""
        head = head_of(self.kind, self.kind.internal) + _METADATA
        if not self.revision or not self._value.startswith(head):
            return b"{" + self._spliced()
        # The same as above in one copy: lists ask this of every object.
        start = b'{%b"resourceVersion":"%d",' % (_METADATA, self.revision)
        return b"".join((start, memoryview(self._value)[len(head) :]))

    def _spliced(self) -> bytes:
        head = head_of(self.kind, self.kind.internal) + _METADATA
        # A value that somebody else wrote may begin in another way: then it is decoded and encoded again.
        if not self._value.startswith(head):
            return self._converted(self.kind.internal)
        if not self.revision:  # of a dry run
            return _METADATA + self._value[len(head) :]
        return b'%b"resourceVersion":"%d",%b' % (_METADATA, self.revision, self._value[len(head) :])

    def _converted(self, version: str) -> bytes:
        document = self.document_in(version)
        rest = {key: value for key, value in document.items() if key not in ("kind", "apiVersion", "metadata")}
        return encode_document({"metadata": document["metadata"], **rest})[1:]


def versioned(typed: Model, revision: int) -> Model:
    """The same object with the resourceVersion of that write."""
    metadata: ObjectMeta = typed.metadata  # type: ignore[attr-defined]  # every kind has metadata
    return replace(typed, metadata=replace(metadata, resource_version=str(revision)))


def convert(kind: Kind, document: Plain, version: str) -> Plain:
    """Convert a document from the storage version to another served version."""
    group_version = kind.group_version(version)
    if kind is CORE:  # events: the other group has the same fields under other names
        data = from_core(document)
        renamed: Plain = shape_of(group_version, kind.kind).complete({**data, "apiVersion": group_version}, data)
        return renamed
    data = from_internal(group_version, kind.kind, document)
    made: Plain = shape_of(group_version, kind.kind).complete({**data, "apiVersion": group_version})
    return made


class ObjectContent(OneObject):
    """An object as the content of a response."""

    __slots__ = ("stored", "version")

    def __init__(self, stored: StoredObject, version: str) -> None:
        self.stored = stored
        self.version = version

    @property
    def document(self) -> Mapping[str, Any]:
        return self.stored.document_in(self.version)

    @property
    def typed(self) -> Model:
        return self.stored.typed

    def encode(self) -> bytes:
        return self.stored.encode(self.version) + b"\n"

    def encode_protobuf(self) -> bytes:
        return self.stored.encode_protobuf(self.version)
