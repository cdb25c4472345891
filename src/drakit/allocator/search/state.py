"""The state of a running search: which devices are taken, and what constraints, counters and shares make of that.

In:  an occupancy: a layout with what others use of it.
Out: `take` and `give_back`, always in pairs: giving back restores the state before.
"""

from __future__ import annotations

from collections.abc import Mapping

from drakit.allocator.inventory.attributes import Values
from drakit.allocator.inventory.usage import Amounts
from drakit.allocator.search.answer import Pick
from drakit.allocator.search.occupancy import Occupancy, has_room
from drakit.allocator.search.options import Option


class _CountersLeft(dict[int, int]):
    """What counters have left. Read when it is looked at: of thousands in wide pools a search looks at a few."""

    def __init__(self, occupancy: Occupancy) -> None:
        super().__init__()
        self._occupancy = occupancy

    def __missing__(self, counter: int) -> int:
        left = self[counter] = self._occupancy.left(counter)
        return left


class SearchState:
    """What a search has taken, on top of an occupancy, which does not change.

    `taken` are the devices that this search has taken whole, `mine` the same by claim. `states` has the state of each
    constraint, `left` what each counter has left. For shared devices of which this search has shares, `charged` is the
    number of shares, and `drawn` the capacity that this search takes. `candidates` are, by option, the devices that may
    be taken now: what is known of them goes with the next device that is taken or given back.
    """

    def __init__(self, occupancy: Occupancy) -> None:
        layout = occupancy.layout
        self.layout = layout
        self.occupancy = occupancy
        self.picks: list[Pick] = []
        self.in_claim = [0] * layout.plan.claims
        self.taken = 0
        self.mine = [0] * layout.plan.claims
        self.states: list[Values | None] = [None] * len(layout.plan.constraints)
        self.held = occupancy.held
        self.left = _CountersLeft(occupancy)
        # Counters that this search has drawn from and of which too little is left for some device.
        self.short: set[int] = set()
        self.charged: dict[int, int] = {}
        self.drawn: dict[int, dict[str, int]] = {}
        self.candidates: dict[int, int] = {}

    def take(self, option: Option, device: int) -> tuple[Values | None, ...] | None:
        """Use the device, and return the constraint states as they were; None when it cannot be used now."""
        if not self.counters_suffice(device):
            return None
        amounts = option.takes.get(device)
        if amounts is not None and not self._has_room(device, amounts, self.drawn.get(device, {})):
            return None
        # Checked last: constraints are the dearest check, and nothing has been changed yet.
        states = self._constrained(option, device)
        if states is None:
            return None
        before = tuple(self.states[each.index] for each in option.constraints)
        for each, state in zip(option.constraints, states, strict=True):
            self.states[each.index] = state
        # From here on nothing can fail: state is changed as a whole or not at all.
        self.candidates.clear()
        self._charge(device, amounts, 1)
        if amounts is None:
            self.taken |= 1 << device
            self.mine[option.claim] |= 1 << device
        self.picks.append(Pick(option.index, device, amounts))
        self.in_claim[option.claim] += 1
        return before

    def give_back(self, option: Option, device: int, before: tuple[Values | None, ...]) -> None:
        pick = self.picks.pop()
        self.candidates.clear()
        self.in_claim[option.claim] -= 1
        for each, state in zip(option.constraints, before, strict=True):
            self.states[each.index] = state
        self._charge(device, pick.consumed, -1)
        if pick.consumed is None:
            self._release(option, 1 << device)

    def _release(self, option: Option, bit: int) -> None:
        self.mine[option.claim] &= ~bit
        # Admin access may have taken the device for several claims.
        if not any(mine & bit for mine in self.mine):
            self.taken &= ~bit

    def _constrained(self, option: Option, device: int) -> list[Values] | None:
        if not option.constraints:
            return []
        states: list[Values] = []
        values = self.layout.values_of(device)
        for each in option.constraints:
            state = each.add(self.states[each.index], values[each.index])
            if state is None:
                return None
            states.append(state)
        return states

    def counters_suffice(self, device: int) -> bool:
        consumes = self.layout.consumes[device]
        # A shared device is charged once, with its first share.
        if not consumes or self._is_charged(device):
            return True
        if self.layout.pool_of[device] in self.occupancy.overdrawn:
            return False
        for counter, amount in consumes:
            if self.left[counter] < amount:
                return False
        return True

    def _is_charged(self, device: int) -> bool:
        return self.layout.traits[device].shared and self._shares(device) > 0

    def _shares(self, device: int) -> int:
        """The number of our shares of a device, plus one if the ledger has any. That one is never given back."""
        found = self.charged.get(device)
        return found if found is not None else int(self.occupancy.shares(device) is not None)

    def used(self, device: int) -> Mapping[str, int]:
        """What others take of a shared device."""
        return self.occupancy.shares(device) or {}

    def _has_room(self, device: int, amounts: Amounts, drawn: Mapping[str, int]) -> bool:
        return has_room(self.layout.traits[device].capacity, amounts, self.used(device), drawn)

    def unaffordable(self, option: Option) -> int:
        """Devices for which counters or capacity do not suffice. Deeper in the search even less is left."""
        occupancy = self.occupancy
        found = occupancy.priced_out | (occupancy.spent[option.index] if option.needs_room else 0)
        for counter in self.short:
            found |= self.layout.dearer(counter, self.left[counter])
        for device, drawn in self.drawn.items():
            if device in option.takes and not self._has_room(device, option.takes[device], drawn):
                found |= 1 << device
        return found

    def _charge(self, device: int, amounts: Amounts | None, sign: int) -> None:
        """Take (`sign` 1) or give back (-1) what a device consumes.

        The counters of a shared device are charged with its first share, and freed with its last.
        """
        shares = self._shares(device) if amounts is not None else 0
        if amounts is None or shares == (0 if sign > 0 else 1):
            for counter, amount in self.layout.consumes[device]:
                self.left[counter] -= sign * amount
                if self.left[counter] < self.layout.dearest[counter]:
                    self.short.add(counter)
                else:
                    self.short.discard(counter)
        if amounts is None:
            return
        self.charged[device] = shares + sign
        drawn = self.drawn.setdefault(device, {})
        for name, amount in amounts:
            drawn[name] = drawn.get(name, 0) + sign * amount
        # Only what the ledger has is left: this search draws nothing from the device any more.
        if self.charged[device] == (self.occupancy.shares(device) is not None):
            del self.charged[device], self.drawn[device]
