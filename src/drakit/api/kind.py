"""What is known of a kind: where it is served, what it is called, which struct it decodes to."""

from __future__ import annotations

import msgspec
from msgspec.structs import force_setattr

from drakit.api.objects.partial import AnyObject
from drakit.base.structs import Model

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
STATUS_VERBS = ("get", "patch", "update")


class Subresource(msgspec.Struct, frozen=True):
    """What is served under `<plural>/<name>/`; kind and version are the parent's unless they are named."""

    name: str
    verbs: tuple[str, ...] = STATUS_VERBS
    kind: str = ""
    group_version: str = ""


class Kind(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """`versions` are served, the preferred one first. `internal` is the one that `model` writes.

    `fully_typed` says that `model` has every field; otherwise an object is a `Partial` of its document and a view.
    """

    group: str
    kind: str
    plural: str
    versions: tuple[str, ...] = ("v1",)
    internal: str = "v1"
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: tuple[Subresource, ...] = ()
    model: type[Model] = AnyObject
    fully_typed: bool = False
    qualified: str = ""
    """`resourceclaims.resource.k8s.io`, or the bare plural in the core group. Worked out once, as is the next."""
    internal_version: str = ""
    """The internal version as an apiVersion has it."""

    def __post_init__(self) -> None:
        force_setattr(self, "qualified", f"{self.plural}.{self.group}" if self.group else self.plural)
        force_setattr(self, "internal_version", self.group_version(self.internal))

    @property
    def singular(self) -> str:
        return self.kind.lower()

    @property
    def list_kind(self) -> str:
        return self.kind + "List"

    def group_version(self, version: str) -> str:
        return f"{self.group}/{version}" if self.group else version

    def serves(self, group_version: str) -> bool:
        group, _, version = group_version.rpartition("/")
        return group == self.group and version in self.versions

    def subresource(self, name: str) -> Subresource | None:
        for each in self.subresources:
            if each.name == name:
                return each
        return None
