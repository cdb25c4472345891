"""Usage: what is in use of one pool as a node sees it, by position of the device.

In:  the ledger's holdings, projected onto a view.
Out: bit sets and amounts for the search, and a key that is equal when a search cannot tell two usages apart.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from drakit.allocator.inventory.shapes import CounterKey

Amounts = tuple[tuple[str, int], ...]
"""Amounts of capacity in nanos, by name."""


_MAX_HISTORY = 10_000


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


class Usages(tuple[Usage, ...]):  # noqa: SLOT001 - tuples of any length cannot have slots
    """What is in use of several pools. Immutable; `replaced` makes the next one, and both know what is between them.

    Invariant: of two with the same `_history` the older one differs from the younger at most in the positions that were
    added to the history after it.
    """

    _history: list[int]
    _age: int

    @staticmethod
    def of(usages: Iterable[Usage]) -> Usages:
        made = Usages(usages)
        made._history, made._age = [], 0
        return made

    def replaced(self, changes: Mapping[int, Usage]) -> Usages:
        """The same with other usages at some positions."""
        usages = list(self)
        for position, usage in changes.items():
            usages[position] = usage
        made, history = Usages.of(usages), self._history
        # Whoever is not the youngest starts a history of its own: there is no telling what is between siblings.
        if self._age == len(history) < _MAX_HISTORY:
            history.extend(changes)
            made._history, made._age = history, len(history)
        return made

    def changed_since(self, before: Sequence[Usage]) -> Collection[int]:
        """The positions at which it differs from another, in rising order."""
        if isinstance(before, Usages) and before._history is self._history and before._age <= self._age:
            positions = sorted(set(self._history[before._age : self._age]))
            return [each for each in positions if before[each] is not self[each]]
        # A usage is immutable: the same object is the same use.
        return [position for position, (old, new) in enumerate(zip(before, self, strict=True)) if old is not new]
