"""Answers to objects.

In:  what a response carries: objects of the same process, or bytes in the version that was asked for.
Out: structs of the internal version for whole kinds, documents with views for the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import msgspec

from drakit.api.exchange import Content, ManyObjects, OneObject
from drakit.api.objects.partial import Partial
from drakit.api.objects.plain import from_json, from_plain, list_from_json
from drakit.api.registry import Kind
from drakit.api.versions.conversion import to_internal
from drakit.base.errors import DecodeError
from drakit.base.status import ListMeta
from drakit.base.structs import Model

T = TypeVar("T")


class Listed(msgspec.Struct, Generic[T], frozen=True):
    """Objects of one revision (of a list that was read in pages: of the revision of its first)."""

    items: tuple[T, ...]
    resource_version: str = ""

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


class ListPage(msgspec.Struct, Generic[T], frozen=True):
    items: list[T]
    metadata: ListMeta


class _RawList(msgspec.Struct, frozen=True):
    metadata: ListMeta = ListMeta()
    items: list[dict[str, Any]] | None = None


class Reader(Generic[T]):
    """Reads the answers about one kind in one version."""

    __slots__ = ("_direct", "kind", "version")

    def __init__(self, kind: Kind, version: str) -> None:
        self.kind = kind
        self.version = version
        self._direct = kind.fully_typed and version == kind.internal

    def wrap(self, found: OneObject) -> T:
        """An object that was handed over."""
        obj: Any = found.typed if self.kind.fully_typed else Partial(found.document, found.typed)
        return obj  # type: ignore[no-any-return]

    def one(self, content: Content) -> T:
        if isinstance(content, OneObject):
            return self.wrap(content)
        return self.from_bytes(content.encode())

    def many(self, content: Content) -> ListPage[T]:
        if isinstance(content, ManyObjects):
            return ListPage([self.wrap(each) for each in content.items], content.metadata)
        return self._list(content.encode())

    def from_bytes(self, data: bytes | msgspec.Raw) -> T:
        if self._direct:
            return self._typed(from_json(self.kind.model, data))
        return self.from_document(_decode(self.kind, data))

    def from_document(self, document: dict[str, Any]) -> T:
        """An object from plain data in this reader's version."""
        if not self.kind.fully_typed:
            return self._typed(Partial.of(self.kind.model, document))
        return self._typed(from_plain(self.kind.model, internal_form(self.kind, self.version, document)))

    def _list(self, data: bytes) -> ListPage[T]:
        if self._direct:
            found = list_from_json(self.kind.model, data)
            return ListPage(list(map(self._typed, found.items)), found.metadata)
        raw = msgspec.convert(_decode(self.kind, data), _RawList)
        head = {"kind": self.kind.kind, "apiVersion": self.kind.group_version(self.version)}
        return ListPage([self.from_document(head | item) for item in raw.items or ()], raw.metadata)

    def _typed(self, obj: Model | Partial[Any]) -> T:
        return obj  # type: ignore[return-value]


def internal_form(kind: Kind, version: str, document: dict[str, Any]) -> dict[str, Any]:
    """A whole object's document of a served version, in the one that its struct has."""
    if version == kind.internal:
        return document
    return {**to_internal(kind.group_version(version), kind.kind, document), "apiVersion": kind.internal_version}


def _decode(kind: Kind, data: bytes | msgspec.Raw) -> dict[str, Any]:
    try:
        document: dict[str, Any] = msgspec.json.decode(data, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise DecodeError(f"the server's answer is no {kind.kind}: {error}") from None
    return document
