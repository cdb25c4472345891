"""Occupancy: what others use of the devices of a layout.

In:  a layout and what is in use of each of its pools.
Out: bit sets and amounts that every search on that state starts from. A search changes none of them.

Pools that all nodes reach are many, and from one pod to the next one or two of them change. `after` takes over
everything but what belongs to these.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from drakit.allocator.inventory.usage import Amounts, Usages
from drakit.allocator.search.layouts import Layout

_FEW = 8
"""With so few pools a new occupancy costs less than one that is taken over."""
Used = dict[int, dict[str, int]]


class Occupancy:
    """The state of a layout before a search takes anything.

    `held` are the devices that somebody holds whole, `used` what is taken of shared ones, by position. `left` is what
    each counter has left, `priced_out` the devices for which that is too little. `spent` are, by alternative, the
    shared devices without room for one share more. `overdrawn` are the pools with a counter below zero: what is in use
    there does not fit what is published, so nothing more is charged.
    """

    __slots__ = ("held", "layout", "left", "overdrawn", "priced_out", "spent", "usages", "used")

    def __init__(self, layout: Layout, usages: Usages) -> None:
        self.layout = layout
        self.usages = usages
        self.held = self.priced_out = 0
        self.used: Used = {}
        self.left = [usages[pool].left[key] for pool, key in layout.counters]
        self.overdrawn: frozenset[int] = frozenset()
        self.spent = [0] * len(layout.plan.alternatives)
        self._take_in(range(len(usages)))

    def after(self, usages: Usages) -> Occupancy:
        """The occupancy of the same layout with other usages."""
        if len(usages) <= _FEW:
            return Occupancy(self.layout, usages)
        changed = usages.changed_since(self.usages)
        if not changed:
            return self
        if len(changed) > len(usages) // 4:
            return Occupancy(self.layout, usages)
        return self._with(usages, changed)

    def _with(self, usages: Usages, changed: Collection[int]) -> Occupancy:
        made, layout = Occupancy.__new__(Occupancy), self.layout
        made.layout, made.usages = layout, usages
        devices, used, left = 0, self.used.copy(), self.left.copy()
        for pool in changed:
            first, last = layout.devices_of(pool)
            devices |= (1 << last) - (1 << first)
            for position in self.usages[pool].shares:
                used.pop(first + position, None)
            for counter in range(*layout.counters_of(pool)):
                left[counter] = usages[pool].left[layout.counters[counter][1]]
        made.held, made.priced_out = self.held & ~devices, self.priced_out & ~devices
        made.spent = [each & ~devices for each in self.spent]
        made.used, made.left, made.overdrawn = used, left, self.overdrawn.difference(changed)
        made._take_in(changed)
        return made

    def _take_in(self, pools: Iterable[int]) -> None:
        """Count what is in use of pools of which nothing is counted yet; `left` has their counters already."""
        layout, overdrawn = self.layout, set[int]()
        for pool in pools:
            usage, (first, _) = self.usages[pool], layout.devices_of(pool)
            self.held |= usage.busy << first
            for position, amounts in usage.shares.items():
                self._share(first + position, dict(amounts))
            for counter in range(*layout.counters_of(pool)):
                if self.left[counter] < layout.dearest[counter]:
                    self.priced_out |= layout.dearer(counter, self.left[counter])
                    if self.left[counter] < 0:
                        overdrawn.add(pool)
        if overdrawn:
            self.overdrawn |= overdrawn

    def _share(self, device: int, amounts: dict[str, int]) -> None:
        traits = self.layout.traits[device]
        if not traits.shared:
            # It was shared and is dedicated now: not available while any share of it is left.
            self.held |= 1 << device
            return
        self.used[device] = amounts
        for alternative, wanted in enumerate(traits.takes):
            if traits.selected >> alternative & 1 and not has_room(traits.capacity, wanted or (), amounts, {}):
                self.spent[alternative] |= 1 << device


def has_room(capacity: Amounts, wanted: Amounts, used: dict[str, int], drawn: dict[str, int]) -> bool:
    """Whether a device has room for one share more, beside those that others and this search have."""
    limits = dict(capacity)
    return all(used.get(name, 0) + drawn.get(name, 0) + amount <= limits[name] for name, amount in wanted)
