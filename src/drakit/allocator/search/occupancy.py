"""Occupancy: what others use of the devices of a layout.

In:  a layout and what is in use of each of its pools.
Out: bit sets that every search on that state starts from. A search changes none of them.

Pools that all nodes reach are many, and from one pod to the next one or two of them change. `after` takes over
everything but what belongs to these.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from drakit.allocator.inventory.usage import Amounts, Usages
from drakit.allocator.search.layouts import Layout

_FEW = 8
"""With so few pools a new occupancy costs less than one that is taken over."""
_NOTHING: Mapping[str, int] = {}


class Occupancy:
    """The state of a layout before a search takes anything.

    `held` are the devices that somebody holds whole, `priced_out` those for which counters have too little left.
    `spent` are, by alternative, the shared devices without room for one share more. `overdrawn` are the pools with a
    counter below zero: what is in use there does not fit what is published, so nothing more is charged.
    """

    __slots__ = ("held", "layout", "overdrawn", "priced_out", "spent", "usages")

    def __init__(self, layout: Layout, usages: Usages) -> None:
        self.layout = layout
        self.usages = usages
        self.held = self.priced_out = 0
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

    def left(self, counter: int) -> int:
        """What a counter has left."""
        pool, key = self.layout.counters[counter]
        return self.usages[pool].left[key]

    def shares(self, device: int) -> Mapping[str, int] | None:
        """What others take of a shared device; None when nobody has a share of it."""
        layout = self.layout
        pool = layout.pool_of[device]
        found = self.usages[pool].shares.get(device - layout.offsets[pool])
        return found if layout.traits[device].shared else None

    def _with(self, usages: Usages, changed: Collection[int]) -> Occupancy:
        made, layout, devices = Occupancy.__new__(Occupancy), self.layout, 0
        for pool in changed:
            first, last = layout.devices_of(pool)
            devices |= (1 << last) - (1 << first)
        others = ~devices
        made.layout, made.usages = layout, usages
        made.held, made.priced_out = self.held & others, self.priced_out & others
        made.spent = [each & others for each in self.spent]
        made.overdrawn = self.overdrawn.difference(changed) if self.overdrawn else self.overdrawn
        made._take_in(changed)
        return made

    def _take_in(self, pools: Iterable[int]) -> None:
        """Count what is in use of pools of which nothing is counted yet."""
        for pool in pools:
            usage, first = self.usages[pool], self.layout.offsets[pool]
            if usage.busy:
                self.held |= usage.busy << first
            for position, amounts in usage.shares.items():
                self._share(first + position, amounts)
            if usage.left:
                self._count(pool)

    def _share(self, device: int, amounts: Mapping[str, int]) -> None:
        traits = self.layout.traits[device]
        if not traits.shared:
            # It was shared and is dedicated now: not available while any share of it is left.
            self.held |= 1 << device
            return
        for alternative, wanted in enumerate(traits.takes):
            if traits.selected >> alternative & 1 and not has_room(traits.capacity, wanted or (), amounts, _NOTHING):
                self.spent[alternative] |= 1 << device

    def _count(self, pool: int) -> None:
        """Find the devices of a pool for which its counters have too little left."""
        kind, left = self.layout.pools[pool].kind, self.usages[pool].left
        priced_out = 0
        for counter, key in enumerate(kind.counters):
            if left[key] < kind.dearest[counter]:
                priced_out |= kind.dearer(counter, left[key])
                if left[key] < 0:
                    self.overdrawn |= {pool}
        if priced_out:
            self.priced_out |= priced_out << self.layout.offsets[pool]


def has_room(capacity: Amounts, wanted: Amounts, used: Mapping[str, int], drawn: Mapping[str, int]) -> bool:
    """Whether a device has room for one share more, beside those that others and this search have."""
    limits = dict(capacity)
    for name, amount in wanted:
        if used.get(name, 0) + drawn.get(name, 0) + amount > limits[name]:
            return False
    return True
