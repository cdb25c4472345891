"""Traits: devices and pools in the terms of one plan.

In:  what the plan's query found in a device list.
Out: DeviceTraits (which alternatives select a device, on which they fail, what it costs), a PoolKind: bit sets over the
     devices of a pool, and PoolTraits, which add the values of attributes. Layouts are put together of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from drakit.allocator.inventory.attributes import Values
from drakit.allocator.inventory.capacity import consumption, short_name
from drakit.allocator.inventory.contents import PoolProblem
from drakit.allocator.inventory.shapes import CounterKey, DeviceResources
from drakit.allocator.inventory.usage import Amounts
from drakit.allocator.search.plans import Alternative, Plan
from drakit.api import DeviceTaint
from drakit.base.taints import untolerated

Row = tuple[Values | None, ...]
"""The values of an attribute, device by device; None: the device does not have it."""


@dataclass(frozen=True, slots=True)
class DeviceTraits:
    """A device as one plan sees it, without its attributes; the bits stand for the plan's alternatives.

    selected: every selector matches, the node may use it, and empty it is large enough.
    failing:  a selector could not be evaluated on it.
    usable:   selected, and neither a taint nor a gate is in the way.
    """

    selected: int
    failing: int
    usable: int
    consumes: tuple[tuple[CounterKey, int], ...]
    """What it takes of shared counters, in nanos."""
    shared: bool
    """Whether several allocations may use it at once."""
    capacity: Amounts
    takes: tuple[Amounts | None, ...]
    """Per alternative, what one share takes; None: more than the device has."""


def traits_of(
    plan: Plan,
    resources: DeviceResources,
    matching: int,
    failing: int,
    taints: tuple[DeviceTaint, ...],
    *,
    reachable: bool,
) -> DeviceTraits:
    """`matching` and `failing` are the alternatives whose selectors match the device, or fail on it."""
    features = plan.features
    shared = resources.shared and features.consumable
    selected = fails = usable = 0
    takes: list[Amounts | None] = []
    for each in plan.alternatives if features.binding or not resources.binding else ():
        taken = _taken(each, resources) if features.consumable else ()
        takes.append(taken)
        bit = 1 << each.index
        if failing & bit:
            fails |= bit
        # In the order of upstream: a selector error counts even on a device that the node cannot reach.
        elif matching & bit and reachable and taken is not None:
            selected |= bit
            tainted = features.taints and untolerated(taints, each.tolerations) is not None
            if not tainted and (features.partitions or not resources.consumes):
                usable |= bit
    return DeviceTraits(
        selected,
        fails,
        usable,
        tuple(resources.consumes.items()) if features.partitions else (),
        shared,
        tuple((short_name(resources.driver, name), each.value.nanos) for name, each in resources.capacity.items())
        if shared
        else (),
        tuple(takes) if shared else (),
    )


def _taken(wanted: Alternative, resources: DeviceResources) -> Amounts | None:
    driver = resources.driver
    amounts = consumption(wanted.capacity, resources.capacity, driver=driver)
    return None if amounts is None else tuple((short_name(driver, each), took.nanos) for each, took in amounts.items())


class PoolKind:
    """A pool as one plan sees it, without attributes: the same for thousands of pools. Interned.

    Everything is by position in the pool: of devices, whose sets are bit sets, and of counters.
    """

    __slots__ = (
        "consumers",
        "consumes",
        "counters",
        "dearest",
        "devices",
        "failing",
        "prices",
        "problem",
        "selected",
        "shared",
        "usable",
    )

    def __init__(
        self,
        plan: Plan,
        devices: tuple[DeviceTraits, ...],
        counters: tuple[CounterKey, ...],
        problem: PoolProblem | None,
    ) -> None:
        self.devices = devices
        self.counters = counters
        self.problem = problem
        alternatives = range(len(plan.alternatives))
        self.selected = tuple([_set(each.selected >> index & 1 for each in devices) for index in alternatives])
        self.failing = tuple([_set(each.failing >> index & 1 for each in devices) for index in alternatives])
        self.usable = tuple([_set(each.usable >> index & 1 for each in devices) for index in alternatives])
        self.shared = _set(each.shared for each in devices)
        self._take_counters()

    def _take_counters(self) -> None:
        index = {key: position for position, key in enumerate(self.counters)}
        self.consumes = tuple([tuple([(index[key], took) for key, took in each.consumes]) for each in self.devices])
        """What each device takes of the counters."""
        self.consumers = _set(bool(each) for each in self.consumes)
        tables: list[dict[int, int]] = [{} for _ in self.counters]
        for position, (device, consumes) in enumerate(zip(self.devices, self.consumes, strict=True)):
            for counter, amount in consumes if not device.shared else ():
                tables[counter][amount] = tables[counter].get(amount, 0) | 1 << position
        self.prices = tuple([tuple(table.items()) for table in tables])
        """Per counter the amounts that devices take, and which devices. What shared ones take may be paid already."""
        self.dearest = tuple([max(table, default=0) for table in tables])
        """Per counter the most that a device takes of it; a counter that nobody uses is short when it is below zero."""

    def dearer(self, counter: int, left: int) -> int:
        """The devices that take more of a counter than it has left. What shared ones take may be paid already."""
        devices = 0
        for amount, takers in self.prices[counter]:
            if amount > left:
                devices |= takers
        return devices


class PoolTraits:
    """A pool as one plan sees it. Interned: equal pools are one object.

    `rows` has, per constraint of the plan, the values of its attribute. A layout of thousands of pools is put together
    of these, and when one pool changes the others have theirs already.
    """

    __slots__ = ("comparable", "having", "kind", "rows", "single_valued", "values")

    def __init__(self, kind: PoolKind, rows: tuple[Row, ...]) -> None:
        self.kind = kind
        self.rows = rows
        self.having: list[int] = []
        """Per constraint the devices that have the attribute at all."""
        self.comparable: list[int] = []
        """Per constraint the devices whose attribute has a value that can be compared."""
        self.single_valued: list[int] = []
        """Per constraint the devices whose attribute has one value."""
        self.values: list[Mapping[object, int]] = []
        """Per constraint the devices that have a value."""
        for row in rows:
            self._read(row)

    def _read(self, row: Row) -> None:
        having = comparable = single_valued = 0
        table: dict[object, int] = {}
        for position, values in enumerate(row):
            bit = 1 << position
            having |= bit if values is not None else 0
            comparable |= bit if values else 0
            single_valued |= bit if values and len(values) == 1 else 0
            for value in values or ():
                table[value] = table.get(value, 0) | bit
        self.having.append(having)
        self.comparable.append(comparable)
        self.single_valued.append(single_valued)
        self.values.append(table)


def _set(members: Iterable[bool | int]) -> int:
    """The positions at which there is a member."""
    found = 0
    for position, member in enumerate(members):
        if member:
            found |= 1 << position
    return found
