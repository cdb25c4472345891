"""Device lists: the devices of a pool without their names, shared by all pools that are alike.

In:  shapes and taints of the devices of a view, in order.
Out: a DeviceList; which of its devices selectors match, as bit sets, and rows of attribute values. Each is found out
     once per list and holds for every plan that asks the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from weakref import WeakValueDictionary

from drakit.allocator.inventory.attributes import Values, attribute_values
from drakit.allocator.inventory.selectors import DeviceSelectors
from drakit.allocator.inventory.shapes import CounterKey, DeviceResources, DeviceShape
from drakit.api import DeviceTaint

Taints = tuple[tuple[DeviceTaint, ...], ...]
_MAX_REMEMBERED = 256
_MAX_RESULTS = 20_000


class PoolProblem(Enum):
    """Why no device of a pool can be used."""

    INCOMPLETE = "incomplete"
    INVALID = "invalid"


class DeviceQuery:
    """What a plan asks of device lists: which devices its selectors match, which attribute values are compared.

    `attributes` are names, each with whether list values can be compared.
    """

    __slots__ = ("attributes", "key", "selectors")

    def __init__(self, selectors: Sequence[DeviceSelectors], attributes: Sequence[tuple[str, bool]]) -> None:
        self.selectors = tuple(selectors)
        self.attributes = tuple(attributes)
        # One string, because Python caches the hash of a string.
        self.key = "\n\0\0".join((*(each.key for each in selectors), *map(str, self.attributes)))


class QueryResult:
    """What a query found in a device list, known by identity alone: lists that answer alike share one object.

    A plan has one query, so lists with the same result are the same to it.
    """

    __slots__ = ()


class PoolResources:
    """A device list without attributes. Interned; there are as many as there are kinds of machines.

    The bits of `reachable` are the devices whose own node selection includes the node.
    """

    __slots__ = ("__weakref__", "_results", "counters", "devices", "reachable", "taints")

    def __init__(
        self, devices: tuple[DeviceResources, ...], taints: Taints, reachable: int, counters: tuple[CounterKey, ...]
    ) -> None:
        self.devices = devices
        self.taints = taints
        self.reachable = reachable
        self.counters = counters
        self._results: dict[object, QueryResult] = {}

    def result(self, key: object) -> QueryResult:
        found = self._results.get(key)
        if found is None:
            if len(self._results) >= _MAX_RESULTS:
                self._results.clear()
            found = self._results[key] = QueryResult()
        return found


class DeviceList:
    """What a search can tell of a pool. Interned.

    Devices whose own node selection leaves a node out are listed all the same, as selectors run on them first.
    """

    __slots__ = ("__weakref__", "_matches", "_results", "_values", "problem", "resources", "shapes")

    def __init__(
        self, shapes: tuple[DeviceShape, ...], resources: PoolResources, problem: PoolProblem | None = None
    ) -> None:
        self.shapes = shapes
        self.resources = resources
        self.problem = problem
        self._results: dict[str, QueryResult] = {}
        self._matches: dict[str, tuple[int, int]] = {}
        self._values: dict[tuple[str, bool], tuple[Values | None, ...]] = {}

    @property
    def taints(self) -> Taints:
        return self.resources.taints

    @property
    def reachable(self) -> int:
        return self.resources.reachable

    def known_result(self, query: DeviceQuery) -> QueryResult | None:
        """The result of a query that was asked before."""
        return self._results.get(query.key)

    def result(self, query: DeviceQuery) -> QueryResult:
        found = self._results.get(query.key)
        if found is None:
            if len(self._results) >= _MAX_REMEMBERED:
                self._results.clear()
            found = self._results[query.key] = self._ask(query)
        return found

    def _ask(self, query: DeviceQuery) -> QueryResult:
        key = (
            self.problem,
            tuple([self.matches(each) for each in query.selectors]),
            tuple([self.values(name, lists=lists) for name, lists in query.attributes]),
        )
        return self.resources.result(key)

    def matches(self, selectors: DeviceSelectors) -> tuple[int, int]:
        """The devices that the selectors match, and those on which one of them fails."""
        found = self._matches.get(selectors.key)
        if found is None:
            if len(self._matches) >= _MAX_REMEMBERED:
                self._matches.clear()
            found = self._matches[selectors.key] = self._check(selectors)
        return found

    def _check(self, selectors: DeviceSelectors) -> tuple[int, int]:
        matching = failing = 0
        for position, shape in enumerate(self.shapes):
            result = selectors.check(shape)
            matching |= result.matches << position
            failing |= result.fails << position
        return matching, failing

    def values(self, attribute: str, *, lists: bool) -> tuple[Values | None, ...]:
        """The values of an attribute, device by device."""
        key = (attribute, lists)
        found = self._values.get(key)
        if found is None:
            if len(self._values) >= _MAX_REMEMBERED:
                self._values.clear()
            found = self._values[key] = tuple(
                attribute_values(shape.driver, shape.device.attributes, attribute, lists=lists) for shape in self.shapes
            )
        return found


def unusable(problem: PoolProblem) -> DeviceList:
    """The list of a pool that serves nobody."""
    return DeviceList((), _NOTHING, problem)


_NOTHING = PoolResources((), (), 0, ())
EMPTY = DeviceList((), _NOTHING)


class DeviceLists:
    """The lists in use; one that no view holds any more is forgotten."""

    def __init__(self) -> None:
        # Interned weakly: pools come and go, and nobody else knows when the last view of a list is dropped.
        self._known: WeakValueDictionary[object, DeviceList] = WeakValueDictionary()
        self._resources: WeakValueDictionary[object, PoolResources] = WeakValueDictionary()

    def of(
        self, shapes: tuple[DeviceShape, ...], taints: Taints, reachable: int, counters: tuple[CounterKey, ...]
    ) -> DeviceList:
        resources = self._resources_of(tuple(shape.resources for shape in shapes), taints, reachable, counters)
        found = self._known.get((shapes, resources))
        if found is None:
            found = self._known[shapes, resources] = DeviceList(shapes, resources)
        return found

    def _resources_of(
        self, devices: tuple[DeviceResources, ...], taints: Taints, reachable: int, counters: tuple[CounterKey, ...]
    ) -> PoolResources:
        key = (devices, taints, reachable, counters)
        resources = self._resources.get(key)
        if resources is None:
            resources = self._resources[key] = PoolResources(*key)
        return resources
