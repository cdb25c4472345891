"""Pools: the devices that a driver publishes under one name, as a node sees them.

In:  all slices of one driver and pool, and a node.
Out: the view of that node: devices in the order of evaluation, shared counters, or the reason why none can be used.

A node goes by the highest generation among the slices that it can see. When these are not the whole pool, the slices of
other nodes are looked at: a newer generation there makes the pool obsolete, otherwise all of that generation count.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from drakit.allocator.inventory.contents import EMPTY, DeviceList, DeviceLists, PoolProblem, unusable
from drakit.allocator.inventory.shapes import CounterKey, DeviceShape, DeviceShapes, counter_use
from drakit.allocator.inventory.usage import Usage
from drakit.api import Device, DeviceTaint, NodeSelector, ResourceSlice
from drakit.base.nodeselectors import matches

PoolKey = tuple[str, str]
Views = tuple["PoolView", ...]
TaintsOf = Callable[[ResourceSlice, Device, DeviceShape], tuple[DeviceTaint, ...]]
Consumes = Mapping[CounterKey, int]


@dataclass(frozen=True, slots=True)
class NodeLabels:
    """A node, as far as slices select by it."""

    name: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """What a view is built with beside the slices. Immutable: a taint rule that changes gives other settings."""

    shapes: DeviceShapes
    contents: DeviceLists
    taints_of: TaintsOf
    partitions: bool


class PoolView:
    """One pool as some nodes see it. Immutable."""

    __slots__ = (
        "_idle",
        "binding",
        "content",
        "counters",
        "devices",
        "distant_consumers",
        "index",
        "key",
        "reason",
        "several_terms",
        "slices",
    )

    def __init__(self, key: PoolKey, *, problem: PoolProblem | None = None, reason: str = "") -> None:
        self.key = key
        self.reason = reason
        self.content = unusable(problem) if problem else EMPTY
        self.devices: tuple[Device, ...] = ()
        self.slices: tuple[ResourceSlice, ...] = ()
        self.index: Mapping[str, int] = {}
        """The position of each device by name."""
        self.counters: Mapping[CounterKey, int] = {}
        self.distant_consumers: tuple[tuple[str, Consumes], ...] = ()
        """Devices of the pool that use counters and are not among `devices`."""
        self.binding = False
        # Whether some node selector has more terms than an allocation can tell.
        self.several_terms = False
        self._idle: Usage | None = None

    @property
    def problem(self) -> PoolProblem | None:
        return self.content.problem

    @property
    def idle(self) -> Usage:
        """The usage of a view of which nobody holds anything."""
        if self._idle is None:
            self._idle = Usage(0, {}, self.counters)
        return self._idle

    def consumed(self, names: Collection[str]) -> Iterator[tuple[CounterKey, int]]:
        """What devices take of counters, those on other nodes included."""
        for name in names:
            position = self.index.get(name)
            if position is not None:
                yield from self.content.shapes[position].resources.consumes.items()
        for name, consumes in self.distant_consumers:
            if name in names:
                yield from consumes.items()


class Pool:
    """All slices of one driver and pool name, whatever their generation. Immutable; views are made when first seen."""

    def __init__(self, key: PoolKey, slices: Iterable[ResourceSlice], settings: PoolSettings) -> None:
        self.key = key
        # By name, as upstream: the order of devices is part of the answer.
        self.slices = tuple(sorted(slices, key=_name))
        self.settings = settings
        self.homes = frozenset(each.spec.node_name for each in self.slices if each.spec.node_name)
        self._views: dict[tuple[tuple[int, ...], int], PoolView | None] = {}

    @cached_property
    def wide(self) -> bool:
        """Whether nodes that no slice names may have access to devices."""
        return any(not each.spec.node_name for each in self.slices)

    @cached_property
    def has_taints(self) -> bool:
        """Whether a slice taints a device of its own; rules are not looked at."""
        return any(device.taints for each in self.slices for device in each.spec.devices)

    @cached_property
    def foreign(self) -> PoolView | None:
        """What a node sees that has no slice here: counters are seen from everywhere, devices are not."""
        seen = [each for each in self.slices if each.spec.node_name and self._announces(each)]
        return self._build(seen, NodeLabels("", {})) if seen else None

    @cached_property
    def selectors(self) -> frozenset[NodeSelector]:
        """All node selectors of slices and devices."""
        of_devices = [device.node_selector for each in self.slices for device in each.spec.devices]
        of_slices = [each.spec.node_selector for each in self.slices]
        return frozenset(each for each in (*of_slices, *of_devices) if each is not None)

    @cached_property
    def named(self) -> frozenset[str]:
        """The nodes that slices or devices name."""
        return self.homes.union(part.node_name for each in self.slices for part in each.spec.devices if part.node_name)

    def with_settings(self, settings: PoolSettings) -> Pool:
        return Pool(self.key, self.slices, settings)

    def view(self, node: NodeLabels) -> PoolView | None:
        """The pool as this node sees it; None when it sees nothing, or only what a newer generation replaces."""
        seen = tuple(number for number, each in enumerate(self.slices) if self._visible(each, node))
        if not seen:
            return None
        mine = [self.slices[number] for number in seen]
        # All that a view depends on: nodes with the same key share one view.
        key = (seen, self._reachable(mine, node))
        if key not in self._views:
            self._views[key] = self._build(mine, node)
        return self._views[key]

    def _announces(self, each: ResourceSlice) -> bool:
        return self.settings.partitions and bool(each.spec.shared_counters)

    def _visible(self, each: ResourceSlice, node: NodeLabels) -> bool:
        spec = each.spec
        if not self.settings.partitions and (spec.per_device_node_selection is not None or spec.shared_counters):
            return False
        # Counters are visible from every node: devices of any node may take something of them.
        if spec.shared_counters:
            return True
        if spec.node_name or spec.all_nodes or spec.node_selector is not None:
            return accessible(node, spec.node_name, spec.node_selector, all_nodes=spec.all_nodes)
        return bool(spec.per_device_node_selection) and any(_reaches(device, node) for device in spec.devices)

    def _reachable(self, mine: Sequence[ResourceSlice], node: NodeLabels) -> int:
        """One bit per device of the slices that select nodes per device; all that tells two nodes apart."""
        bits, position = 0, 0
        for each in mine:
            if each.spec.per_device_node_selection:
                for device in each.spec.devices:
                    bits |= _reaches(device, node) << position
                    position += 1
        return bits

    def _build(self, visible: Sequence[ResourceSlice], node: NodeLabels) -> PoolView | None:
        generation = max(each.spec.pool.generation for each in visible)
        mine = [each for each in visible if each.spec.pool.generation == generation]
        # The common case: the node sees the whole pool, and nobody else has to be looked at.
        if _counts(mine) == {len(mine)}:
            return self._assemble(mine, mine, node)
        # Slices of another node are newer: what this node sees is about to be replaced.
        if any(each.spec.pool.generation > generation for each in self.slices):
            return None
        whole = [each for each in self.slices if each.spec.pool.generation == generation]
        counts = _counts(whole)
        if len(counts) > 1:
            told = ", ".join(map(str, sorted(counts)))
            return self._unusable(PoolProblem.INVALID, f"its slices disagree on resourceSliceCount: {told}")
        (count,) = counts
        if len(whole) > count:
            return self._unusable(
                PoolProblem.INVALID, f"it has {len(whole)} slices, more than its resourceSliceCount {count}"
            )
        if len(whole) < count:
            return self._unusable(PoolProblem.INCOMPLETE, f"{len(whole)} of its {count} slices are published")
        return self._assemble(mine, whole, node)

    def _unusable(self, problem: PoolProblem, reason: str) -> PoolView:
        return PoolView(self.key, problem=problem, reason=reason)

    def _assemble(self, mine: Sequence[ResourceSlice], whole: Sequence[ResourceSlice], node: NodeLabels) -> PoolView:
        view = PoolView(self.key)
        listed = [(each, device) for each in mine if not self._announces(each) for device in each.spec.devices]
        view.devices = tuple([device for _, device in listed])
        view.slices = tuple([each for each, _ in listed])
        view.index = {device.name: position for position, device in enumerate(view.devices)}
        if len(view.index) < len(listed):
            name = _first_repeated(device.name for device in view.devices)
            return self._unusable(PoolProblem.INVALID, f"duplicate device name {name}")
        if self.settings.partitions and (reason := _take_counters(view, mine, whole)):
            return self._unusable(PoolProblem.INVALID, reason)
        view.content = self._content(view, node)
        view.several_terms = any(_has_several_terms(each) for each in mine)
        view.binding = any([shape.resources.binding for shape in view.content.shapes])
        return view

    def _content(self, view: PoolView, node: NodeLabels) -> DeviceList:
        made, taints_of = self.settings.shapes, self.settings.taints_of
        driver, reachable = self.key[0], 0
        shapes = tuple([made.of(driver, device) for device in view.devices])
        taints: list[tuple[DeviceTaint, ...]] = []
        for position, (each, device, shape) in enumerate(zip(view.slices, view.devices, shapes, strict=True)):
            taints.append(taints_of(each, device, shape))
            if not each.spec.per_device_node_selection or _reaches(device, node):
                reachable |= 1 << position
        return self.settings.contents.of(shapes, tuple(taints), reachable, tuple(view.counters))


def accessible(
    node: NodeLabels, node_name: str | None, selector: NodeSelector | None, *, all_nodes: bool | None
) -> bool:
    """Whether a node may use what names a node, all nodes, or a selector; the first that is set counts."""
    if node_name:
        return node.name == node_name
    if all_nodes:
        return True
    return selector is not None and matches(selector, name=node.name, labels=node.labels)


def _reaches(device: Device, node: NodeLabels) -> bool:
    return accessible(node, device.node_name, device.node_selector, all_nodes=device.all_nodes)


def _has_several_terms(each: ResourceSlice) -> bool:
    selectors = [each.spec.node_selector, *[device.node_selector for device in each.spec.devices]]
    return any([selector is not None and len(selector.node_selector_terms) > 1 for selector in selectors])


def _name(each: ResourceSlice) -> str:
    return each.metadata.name


def _counts(slices: Iterable[ResourceSlice]) -> set[int]:
    return {each.spec.pool.resource_slice_count for each in slices}


def _first_repeated(names: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _take_counters(view: PoolView, mine: Sequence[ResourceSlice], whole: Sequence[ResourceSlice]) -> str:
    """Fill in what the pool has and who uses it; return what is wrong, if anything is."""
    counters: dict[CounterKey, int] = {}
    sets: set[str] = set()
    for each in mine:
        for counter_set in each.spec.shared_counters:
            if counter_set.name in sets:
                return f"duplicate counter set name {counter_set.name}"
            sets.add(counter_set.name)
            counters |= {
                (counter_set.name, name): counter.value.nanos for name, counter in counter_set.counters.items()
            }
    # Of the whole pool, not only of this node: devices on other nodes draw from the same counters.
    users = [device for each in whole for device in each.spec.devices if device.consumes_counters]
    for device in users:
        for use in device.consumes_counters:
            if use.counter_set not in sets:
                return f"counter set {use.counter_set} not found"
            for name in use.counters:
                if (use.counter_set, name) not in counters:
                    return f"counter {name} not found in counter set {use.counter_set}"
    view.counters = counters
    near = {id(device) for device in view.devices}
    view.distant_consumers = tuple([(each.name, counter_use(each)) for each in users if id(each) not in near])
    return ""
