"""The objects that answers depend on, by kind, whichever way they came.

In:  typed objects, in any order; kinds that no answer depends on are passed over.
Out: lookups by name, and the allocator's inventory of the same objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

from drakit.allocator import Inventory
from drakit.api import (
    DeviceClass,
    DeviceTaintRule,
    Node,
    Partial,
    Pod,
    PodGroup,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from drakit.base.gates import FeatureGates
from drakit.base.structs import Model
from drakit.scheduler.rehearsal import Rehearsal

M = TypeVar("M", bound=Model)
KINDS = (
    Node, Pod, ResourceClaim, ResourceClaimTemplate, ResourceSlice, DeviceClass, DeviceTaintRule, PodGroup,
)  # fmt: skip
"""What answers depend on."""
NodeTemplates = Mapping[str, Sequence[Mapping[str, Any]]]
"""Kinds of nodes by name: the documents of a Node, its ResourceSlices and the DeviceClasses that come with them."""
_INVENTORY = (Node, ResourceSlice, DeviceClass, DeviceTaintRule, ResourceClaim)


class ClusterObjects:
    """Immutable. `with_changes` gives another one. `templates` are nodes that could be added to the cluster."""

    def __init__(
        self,
        objects: Iterable[Model | Partial[Any]],
        *,
        gates: FeatureGates | None = None,
        templates: NodeTemplates | None = None,
    ) -> None:
        self.gates = gates or FeatureGates.defaults()
        self.templates: NodeTemplates = {} if templates is None else templates
        self._objects: dict[type[Model], dict[tuple[str, str], Any]] = {kind: {} for kind in KINDS}
        for each in objects:
            view: Any = each.view if isinstance(each, Partial) else each
            if type(view) in self._objects:
                metadata = view.metadata
                # A later object replaces an earlier one of its name; `with_changes` relies on that.
                self._objects[type(view)][metadata.namespace, metadata.name] = each

    def all(self, kind: type[M]) -> Iterator[M]:
        """The objects of a kind, as views where the kind is modelled in part."""
        for each in self._objects[kind].values():
            yield each.view if isinstance(each, Partial) else each

    def find(self, kind: type[M], name: str, namespace: str = "") -> M | None:
        found = self._objects[kind].get((namespace, name))
        return found.view if isinstance(found, Partial) else found

    def whole(self, kind: type[Model]) -> Iterator[Any]:
        """The objects of a kind as they came: with their documents where the kind is modelled in part."""
        yield from self._objects[kind].values()

    def documents(self, kind: type[Model]) -> Iterator[Mapping[str, Any]]:
        """The whole documents of a kind that is modelled in part, where they are known."""
        for each in self._objects[kind].values():
            if isinstance(each, Partial):
                yield each.document

    @property
    def objects(self) -> Iterator[Model | Partial[Any]]:
        for table in self._objects.values():
            yield from table.values()

    def with_changes(
        self, add: Iterable[Model | Partial[Any]] = (), remove: Iterable[Model | Partial[Any]] = ()
    ) -> ClusterObjects:
        """A copy with changes. An added object replaces the one of its name."""
        gone = {_key(each) for each in remove}
        kept = (each for each in self.objects if _key(each) not in gone)
        return ClusterObjects((*kept, *add), gates=self.gates, templates=self.templates)

    @cached_property
    def inventory(self) -> Inventory:
        inventory = Inventory(self.gates)
        for each in self.objects:
            if isinstance(each.view if isinstance(each, Partial) else each, _INVENTORY):
                inventory.put(each)
        return inventory

    def rehearsal(self) -> Rehearsal:
        """The scheduler on these objects; a new one each time, because the caller may change its cluster."""
        return Rehearsal(self.objects, gates=self.gates)

    @cached_property
    def pods_by_uid(self) -> Mapping[str, Pod]:
        return {pod.metadata.uid: pod for pod in self.all(Pod)}


def _key(each: Model | Partial[Any]) -> tuple[type[Model], str, str]:
    view: Any = each.view if isinstance(each, Partial) else each
    return type(view), view.metadata.namespace, view.metadata.name
