"""What differs from kind to kind when an object is written.

In:  the document that a client sent, in the storage version, and the stored one.
Out: the document as it may be stored: fields that the client may not set have their old value.

The new document and its metadata belong to the request and may be changed in place. Its other parts may be shared with
other objects: replace them, never change them. The old document is never changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from drakit.api.objects.plain import Plain
from drakit.api.registry import Kind

_BESIDE_STATUS = frozenset({"metadata", "status", "kind", "apiVersion"})
_STATUS_META = (
    *("generation", "selfLink", "labels", "annotations", "finalizers", "ownerReferences", "deletionTimestamp"),
)


class KindStrategy:
    """How an ordinary kind is written. Subclasses override what differs."""

    generation = False
    """Whether metadata.generation counts changes of the spec."""
    unconditional = True
    """Whether an update may come without a resourceVersion."""
    create_on_update = False
    """Whether an update of an object that does not exist creates it."""
    returns_deleted = False
    """Whether a deletion is answered with the deleted object, instead of a Status."""
    has_status = False
    """Whether status is written by the subresource alone."""
    opaque = False
    """Whether the spec has opaque parameters, whose exact text counts for the generation."""
    status_metadata = False
    """Whether an update of the status may change labels, annotations, finalizers and owners."""
    orphans_dependents = False
    """Whether a deletion without a propagation policy leaves the dependents: so did the first version of some kinds."""
    deletion_warning = ""
    """What a client is told that deletes without a propagation policy."""
    extra_fields: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Fields for field selectors, with the path of each in a document."""
    select_namespace = True
    """Whether `metadata.namespace` is a field for field selectors."""
    unselectable = '"{name}" is not a known field selector: only "metadata.name", "metadata.namespace"'

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.selectable = frozenset(
            ("metadata.name", *(("metadata.namespace",) if self.select_namespace else ()), *self.extra_fields)
        )

    def prepare_create(self, new: Plain) -> None:
        if self.has_status:
            new.pop("status", None)

    def set_requester(self, new: Plain, user: str, uid: str, groups: tuple[str, ...], extra: Mapping[str, Any]) -> None:
        """Record who made the object, for kinds that do so."""

    def prepare(self, subresource: str, new: Plain, old: Mapping[str, Any], now: str) -> None:  # noqa: ARG002
        """Prepare an update of the object or of one of its subresources."""
        if subresource == "status":
            self.prepare_status(new, old)
        else:
            self.prepare_update(new, old)

    def prepare_update(self, new: Plain, old: Mapping[str, Any]) -> None:
        """Prepare an update of the object itself."""
        if self.has_status:
            restore(new, old, "status")

    def prepare_status(self, new: Plain, old: Mapping[str, Any]) -> None:
        """Prepare an update of the status: all else keeps its old value."""
        restore(new, old, *sorted((new.keys() | old.keys()) - _BESIDE_STATUS))
        if not self.status_metadata:
            restore(new["metadata"], old["metadata"], *_STATUS_META)

    def warnings(self, new: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[str]:  # noqa: ARG002
        """Warnings about an object that is accepted."""
        yield from ()

    def changes_generation(self, new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
        return new.get("spec") != old.get("spec")

    def default_grace(self, document: Mapping[str, Any], asked: int | None) -> int | None:  # noqa: ARG002
        """The grace period of a deletion in seconds; None for a kind that has none."""
        return None

    def fields(self, document: Mapping[str, Any]) -> dict[str, str]:
        """The values that field selectors compare."""
        metadata = document["metadata"]
        found = {"metadata.name": metadata.get("name", ""), "metadata.namespace": metadata.get("namespace", "")}
        for name, path in self.extra_fields.items():
            found[name] = text_at(document, path)
        return found


def restore(new: Plain, old: Mapping[str, Any], *names: str) -> None:
    """Give fields their old value, or remove those that had none."""
    for name in names:
        if name in old:
            new[name] = old[name]
        else:
            new.pop(name, None)


def text_at(document: Mapping[str, Any], path: tuple[str, ...]) -> str:
    """A value as a selector compares it; empty when it is missing."""
    value: Any = document
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
        if value is None:
            return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def dotted(*names: str) -> dict[str, tuple[str, ...]]:
    """Selectable fields whose name is their path."""
    return {name: tuple(name.split(".")) for name in names}
