"""The inventory of a cluster of simulated nodes: how many of which kind, as data.

In:  a YAML file with templates of nodes: count, name, labels, taints, capacity, device profiles or slices.
Out: the nodes one by one, each with what its drivers would publish; the classes of their profiles.

Text may have placeholders: `{index}` counts the nodes of a template from 1, `{node}` is the node's name, and each name
under `inTurn` has a list whose values the nodes take in turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from drakit.api import DeviceClass, ResourceSlice, ResourceSliceSpec, from_plain
from drakit.api.objects.meta import ObjectMeta
from drakit.base.errors import DecodeError, UsageError
from drakit.base.quantity import Quantity, QuantityError
from drakit.base.structs import Model
from drakit.drivers.profiles import YAML_LOADER, DeviceProfile, fill_template, load_profile, profile_slices

MOST_NODES = 20_000
CAPACITY = {"cpu": "32", "memory": "128Gi", "ephemeral-storage": "500Gi", "pods": "110"}
"""What a node has unless its template says otherwise."""


class SimulatedNode(msgspec.Struct, frozen=True, kw_only=True):
    """One node, and what is published for it."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Mapping[str, Any], ...]
    capacity: Mapping[str, Quantity]
    slices: tuple[ResourceSlice, ...]

    @property
    def drivers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.spec.driver for each in self.slices))


class NodeTemplate(Model, forbid_unknown_fields=True):
    """A kind of node."""

    name: str = "node-{index}"
    count: int = 1
    labels: Mapping[str, str] = {}
    taints: tuple[Mapping[str, Any], ...] = ()
    capacity: Mapping[str, str | int] = {}
    profiles: tuple[str, ...] = ()
    """Names of device profiles, or files with one."""
    cards: int | None = None
    """How many cards of each profile a node has; all without it."""
    slices: tuple[Mapping[str, Any], ...] = ()
    """Further slices, each the `spec` of a ResourceSlice."""
    in_turn: Mapping[str, Sequence[Any]] = {}

    def nodes(self) -> Iterator[SimulatedNode]:
        for index in range(self.count):
            values = {name: each[index % len(each)] for name, each in self.in_turn.items() if each}
            values["index"] = index + 1
            name = str(fill_template(self.name, values))
            yield self._node(name, {**values, "node": name})

    def _node(self, name: str, values: Mapping[str, Any]) -> SimulatedNode:
        profiles = [load_profile(each) for each in self.profiles]
        needed = {label: value for each in profiles for label, value in each.node_labels.items()}
        labels = fill_template(self.labels, values)
        return SimulatedNode(
            name=name,
            labels={**needed, **{str(label): str(value) for label, value in labels.items()}},
            taints=tuple(fill_template(each, values) for each in self.taints),
            capacity={resource: _amount(resource, each) for resource, each in {**CAPACITY, **self.capacity}.items()},
            slices=(*self._published(profiles, name), *self._further(name, values)),
        )

    def _published(self, profiles: Sequence[DeviceProfile], name: str) -> Iterator[ResourceSlice]:
        for each in profiles:
            yield from profile_slices(each, name, cards=self.cards)

    def _further(self, name: str, values: Mapping[str, Any]) -> Iterator[ResourceSlice]:
        for number, each in enumerate(self.slices):
            spec = from_plain(ResourceSliceSpec, {"nodeName": name, **fill_template(each, values)})
            yield ResourceSlice(metadata=ObjectMeta(name=f"{name}-{spec.driver}-{number}"), spec=spec)


class ClusterInventory(Model, forbid_unknown_fields=True):
    nodes: tuple[NodeTemplate, ...]

    @property
    def size(self) -> int:
        return sum(each.count for each in self.nodes)

    def simulated(self) -> list[SimulatedNode]:
        """Raise UsageError for a template that cannot be, or two nodes of one name."""
        found = [node for each in self.nodes for node in each.nodes()]
        names = set()
        for each in found:
            if each.name in names:
                raise UsageError(f"two nodes are called {each.name!r}: put {{index}} into the name of the template")
            names.add(each.name)
        return found

    def device_classes(self) -> tuple[DeviceClass, ...]:
        """Of all profiles, each once."""
        profiles = dict.fromkeys(name for each in self.nodes for name in each.profiles)
        found = (each for name in profiles for each in load_profile(name).device_classes())
        return tuple({each.metadata.name: each for each in found}.values())


def load_inventory(path: Path) -> ClusterInventory:
    """Raise UsageError that names the file and the field."""
    try:
        found = from_plain(ClusterInventory, yaml.load(path.read_bytes(), Loader=YAML_LOADER))  # noqa: S506 - safe
        counts = [each.count for each in found.nodes]
        if min(counts, default=0) < 0 or sum(counts) > MOST_NODES:
            raise UsageError(f"expected 0 to {MOST_NODES:,} nodes, got {', '.join(map(str, counts))}")
        # Only to find errors now: a template that cannot be filled in must not fail half-way through a start.
        found.simulated()
    except (OSError, UnicodeDecodeError, yaml.YAMLError, DecodeError, UsageError) as error:
        raise UsageError(f"cluster {path}: {error}") from None
    return found


def _amount(resource: str, text: str | int) -> Quantity:
    try:
        return Quantity.parse(str(text))
    except QuantityError as error:
        raise UsageError(f"capacity {resource}: {error}") from None
