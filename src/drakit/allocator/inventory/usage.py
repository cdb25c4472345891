"""Usage: what is in use of one pool as a node sees it, by position of the device.

In:  the ledger's holdings, projected onto a view.
Out: bit sets and amounts for the search, and a key that is equal when a search cannot tell two usages apart.
"""

from __future__ import annotations

from collections.abc import Mapping

from drakit.allocator.inventory.shapes import CounterKey

Amounts = tuple[tuple[str, int], ...]
"""Amounts of capacity in nanos, by name."""


class Usage:
    """`busy` are devices that somebody holds whole, `shares` what is taken of others, `left` what counters have left.

    Invariant: `key` is equal exactly when a search cannot tell two usages apart.
    """

    __slots__ = ("busy", "key", "left", "shares")

    def __init__(self, busy: int, shares: Mapping[int, Mapping[str, int]], left: Mapping[CounterKey, int]) -> None:
        self.busy = busy
        self.shares = shares
        self.left = left
        self.key: object = busy
        # The values of `left` suffice: they have the order of the view's counters, and only views alike are compared.
        if shares or left:
            amounts = tuple((position, tuple(sorted(used.items()))) for position, used in sorted(shares.items()))
            self.key = (busy, amounts, tuple(left.values()))

    @property
    def held(self) -> int:
        """Devices of which somebody holds all or a share."""
        held = self.busy
        for position in self.shares:
            held |= 1 << position
        return held
