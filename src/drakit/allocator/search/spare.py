"""Spare devices: how many devices an allocation leaves free, of those that the claims could use.

In:  a node's layout, what is in use there, and the answer that was found for it.
Out: a number by which nodes that fit can be compared. Nothing is searched.

A device is free when nobody holds it or a share of it, and its counters still have what it takes. Requests with admin
access take nothing, and so count nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from drakit.allocator.inventory.usage import Usage
from drakit.allocator.search.answer import SearchAnswer
from drakit.allocator.search.layouts import Layout, bits_of


def devices_left(layout: Layout, usages: Sequence[Usage], answer: SearchAnswer) -> int:
    """The devices that are free once the answer has been carried out."""
    alternatives = layout.plan.alternatives
    useful = 0
    for each in alternatives:
        if not each.admin:
            useful |= layout.usable[each.index]
    busy = _busy(layout, usages)
    taken = 0
    for pick in answer.picks:
        if not alternatives[pick.alternative].admin:
            taken |= 1 << pick.device
    free = useful & ~(busy | taken)
    return free.bit_count() if not layout.counters else _affordable(layout, usages, free, taken & ~busy)


def _busy(layout: Layout, usages: Sequence[Usage]) -> int:
    busy = 0
    for offset, usage in zip(layout.offsets, usages, strict=True):
        busy |= usage.held << offset
    return busy


def _affordable(layout: Layout, usages: Sequence[Usage], free: int, taken: int) -> int:
    """How many of the `free` devices could each be the next one, once `taken` are allocated."""
    left = [usages[pool].left[key] for pool, key in layout.counters]
    for device in bits_of(taken):
        for counter, amount in layout.consumes[device]:
            left[counter] -= amount
    return sum(all(amount <= left[counter] for counter, amount in layout.consumes[device]) for device in bits_of(free))
