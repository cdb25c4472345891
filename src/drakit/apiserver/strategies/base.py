"""What differs from kind to kind when an object is written.

In:  the document that a client sent, in the storage version, and the one that is stored.
Out: the document as it may be stored: what is not the client's to set is set back.

A document that is handed in belongs to the request, as does its metadata, and may be changed in place; its other parts,
which may be shared, and the old document may not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from drakit.api.objects.plain import Plain
from drakit.api.registry import Kind

_BESIDE_STATUS = frozenset({"metadata", "status", "kind", "apiVersion"})
_STATUS_META = ("generation", "selfLink", "labels", "annotations", "finalizers", "ownerReferences")


class KindStrategy:
    """The rules of a kind that has nothing special. Subclasses say what is."""

    generation = False
    """Whether metadata.generation counts the changes of the spec."""
    unconditional = True
    """Whether an update may come without a resourceVersion."""
    create_on_update = False
    returns_deleted = False
    """Whether the answer to a deletion is the object that is gone."""
    has_status = False
    opaque = False
    """Whether there are opaque parameters, whose text counts for the generation."""
    status_metadata = False
    """Whether an update of the status may change labels and the like."""
    extra_fields: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Fields to select by, and where their values are in a document."""
    select_namespace = True
    unselectable = '"{name}" is not a known field selector: only "metadata.name", "metadata.namespace"'

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.selectable = frozenset(
            ("metadata.name", *(("metadata.namespace",) if self.select_namespace else ()), *self.extra_fields)
        )

    def prepare_create(self, new: Plain) -> None:
        if self.has_status:
            new.pop("status", None)

    def prepare(self, subresource: str, new: Plain, old: Mapping[str, Any], now: str) -> None:  # noqa: ARG002
        """For an update through any door: the object itself, or one of its subresources."""
        if subresource == "status":
            self.prepare_status(new, old)
        else:
            self.prepare_update(new, old)

    def prepare_update(self, new: Plain, old: Mapping[str, Any]) -> None:
        """For an update of the object itself."""
        if self.has_status:
            restore(new, old, "status")

    def prepare_status(self, new: Plain, old: Mapping[str, Any]) -> None:
        """For an update of the status alone."""
        for name in sorted((new.keys() | old.keys()) - _BESIDE_STATUS):
            restore(new, old, name)
        if not self.status_metadata:
            for name in _STATUS_META:
                restore(new["metadata"], old["metadata"], name)

    def warnings(self, new: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[str]:  # noqa: ARG002
        """What the user should know about an object that is accepted all the same."""
        yield from ()

    def changes_generation(self, new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
        return new.get("spec") != old.get("spec")

    def default_grace(self, document: Mapping[str, Any], asked: int | None) -> int | None:  # noqa: ARG002
        """Seconds that an object has to end; none: it is removed at once."""
        return None

    def fields(self, document: Mapping[str, Any]) -> dict[str, str]:
        """What field selectors see."""
        metadata = document["metadata"]
        found = {"metadata.name": metadata.get("name", ""), "metadata.namespace": metadata.get("namespace", "")}
        for name, path in self.extra_fields.items():
            found[name] = text_at(document, path)
        return found


def restore(new: Plain, old: Mapping[str, Any], name: str) -> None:
    """Set a field back to what it was."""
    if name in old:
        new[name] = old[name]
    else:
        new.pop(name, None)


def text_at(document: Mapping[str, Any], path: tuple[str, ...]) -> str:
    """A value as a selector compares it; empty when it is not there."""
    value: Any = document
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
        if value is None:
            return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def dotted(*names: str) -> dict[str, tuple[str, ...]]:
    """Selectable fields whose name is their place."""
    return {name: tuple(name.split(".")) for name in names}
