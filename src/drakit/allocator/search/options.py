"""Options: the alternatives of a plan on one layout.

In:  a layout.
Out: per alternative three sets of devices: those that it selects, those on which a selector fails, those that it can
     use. Also what one share takes of a device, and a lower bound for what the devices take of the shared counters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate

from drakit.allocator.inventory.usage import Amounts
from drakit.allocator.search.constraints import Constraint
from drakit.allocator.search.layouts import Layout, bits_of


@dataclass(frozen=True, slots=True, eq=False)
class Option:
    """An alternative on a layout. In sets of devices, bit i stands for device i of the layout.

    `needs_room`: a shared device must have capacity left for one more share.
    """

    index: int
    """Its number among all alternatives of the plan."""
    claim: int
    request: int
    count: int
    """Devices that it wants; for `takes_all` as many as are selected on this layout."""
    takes_all: bool
    admin: bool
    needs_room: bool
    selected: int
    """Devices that match and are large enough when empty. `All` means all of these."""
    failing: int
    """Devices on which a selector fails: reaching one of them ends the search."""
    usable: int
    """Of the selected ones, those that no taint and no gate keeps away."""
    is_scarce: bool
    """Whether counters or capacity may be too little for some of the usable ones."""
    constraints: tuple[Constraint, ...]
    takes: dict[int, Amounts]
    """What one share takes of each shared device, by position."""
    # Per budget (counters that are added up), what the k cheapest devices take of it, for every k.
    drains: Mapping[tuple[int, ...], tuple[int, ...]]

    def least(self, budget: tuple[int, ...], devices: int) -> int:
        """The least that this many devices take of a budget. Devices beyond those that exist add nothing."""
        sums = self.drains.get(budget, (0,))
        return sums[min(devices, len(sums) - 1)]


def option_of(layout: Layout, index: int, held: int, *, admin_room: bool) -> Option:
    """`admin_room`: whether requests with admin access need free capacity, too."""
    each = layout.plan.alternatives[index]
    selected = layout.selected[index]
    count = selected.bit_count() if each.takes_all else each.count
    needs_room = admin_room or not each.admin
    takes = {
        position: trait.takes[index] or () if needs_room else ()
        for position, trait in enumerate(layout.traits)
        if trait.shared and selected >> position & 1
    }
    return Option(
        index=index,
        claim=each.claim,
        request=each.request,
        count=count,
        takes_all=each.takes_all,
        admin=each.admin,
        needs_room=needs_room,
        selected=selected,
        # For `All` selectors were checked before the search. Devices in use are reached by admin access only.
        failing=0 if each.takes_all else layout.failing[index] & (-1 if each.admin else ~held),
        usable=layout.usable[index],
        is_scarce=bool(layout.usable[index] & (layout.consumers | layout.shared)),
        constraints=each.constraints,
        takes=takes,
        drains=dict(_drains(layout, selected, count)),
    )


def _drains(layout: Layout, devices: int, count: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The budgets from which every choice of `count` devices takes something.

    Shared devices count as free: their counters may be charged already.
    """
    total = devices.bit_count()
    # A budget is of one pool. Where there are devices enough in the others, none bounds anything.
    if total - max((len(pool.kind.devices) for pool in layout.pools), default=0) >= count:
        return
    takers: dict[tuple[int, ...], dict[int, int]] = {}
    for device in bits_of(devices):
        for counter, amount in () if layout.traits[device].shared else layout.consumes[device]:
            for budget in layout.budgets_of[counter]:
                amounts = takers.setdefault(budget, {})
                amounts[device] = amounts.get(device, 0) + amount
    for budget, amounts in takers.items():
        # Devices that take nothing of the budget come first. Where they suffice, the budget bounds nothing.
        free = total - len(amounts)
        if free < count:
            yield budget, tuple(accumulate([0] * free + sorted(amounts.values()), initial=0))
