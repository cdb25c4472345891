"""Objects as they stand in texts."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import msgspec

from drakit.api import ObjectMeta, Partial
from drakit.api.codec.documents import Object
from drakit.api.registry import Kind
from drakit.manifests.problems import ManifestProblem


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """An object and where it stands.

    `document` is the object as it was written, `object` the typed one with defaults. `reported` are the paths of which
    a problem was told; `omitted` those of them whose value was left out because its type was wrong.
    """

    source: str
    index: int
    prefix: str = ""
    kind: Kind
    version: str
    document: Mapping[str, Any]
    object: Object
    reported: tuple[str, ...] = ()
    omitted: tuple[str, ...] = ()

    @property
    def view(self) -> Any:
        """The typed object; of a kind that is modelled in part, its modelled part."""
        return self.object.view if isinstance(self.object, Partial) else self.object

    @property
    def metadata(self) -> ObjectMeta:
        meta: ObjectMeta = self.view.metadata
        return meta

    @property
    def title(self) -> str:
        return f"{self.kind.kind} {name_of(self.metadata)}"

    @property
    def place(self) -> str:
        return f"{self.source}: {self.title}"

    @property
    def identity(self) -> Hashable:
        """What makes it the same object as another one; one whose name is generated is like no other."""
        meta = self.metadata
        return (self.kind.qualified, meta.namespace, meta.name) if meta.name else id(self)

    def problem(self, rule: str, path: str, reason: str) -> ManifestProblem:
        """A problem of a field, without its position."""
        return ManifestProblem(
            rule=rule,
            source=self.source,
            reason=reason,
            object=self.title,
            document=self.index,
            prefix=self.prefix,
            path=path,
        )


class ManifestText(msgspec.Struct, frozen=True):
    """A text and what became of it. `skipped` counts objects of groups that have nothing to do with devices."""

    name: str
    content: str
    manifests: tuple[Manifest, ...] = ()
    problems: tuple[ManifestProblem, ...] = ()
    skipped: int = 0


def name_of(meta: ObjectMeta) -> str:
    """The name, or as much of it as is known before a server makes it up."""
    return meta.name or f"{meta.generate_name}…"
