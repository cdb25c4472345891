"""The state of a running search: which devices are taken, and what constraints, counters and shares make of that.

In:  a layout and what is in use of each pool.
Out: `take` and `give_back`, always in pairs: giving back restores the state before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from drakit.allocator.inventory.attributes import Values
from drakit.allocator.inventory.usage import Amounts, Usage
from drakit.allocator.search.answer import Pick
from drakit.allocator.search.layouts import Layout
from drakit.allocator.search.options import Option


class SearchState:
    """`held` are devices that others hold whole, `used` what others use of shared ones; neither changes.

    `taken` are the devices that this search has taken whole, `mine` the same by claim. `states` are those of the
    constraints, `left` what counters have left, `charged` how many shares of a device count, `drawn` what they draw.
    """

    def __init__(self, layout: Layout, usages: Sequence[Usage]) -> None:
        self.layout = layout
        self.picks: list[Pick] = []
        self.in_claim = [0] * layout.plan.claims
        self.taken = 0
        self.mine = [0] * layout.plan.claims
        self.states: list[Values | None] = [None] * len(layout.plan.constraints)
        self.held, self.used = held_devices(layout, usages)
        self.left = [usages[pool].left[key] for pool, key in layout.counters]
        # Counters of which too little is left for some device.
        self.short = {
            counter for counter, (left, price) in enumerate(zip(self.left, layout.dearest, strict=True)) if left < price
        }
        self.overdrawn = self._overdrawn()
        # Shared devices whose counters are charged already; those of the ledger never come off.
        self.charged: dict[int, int] = dict.fromkeys(self.used, 1)
        self.drawn: dict[int, dict[str, int]] = {}
        self._spent: dict[int, int] = {}

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
        self._charge(device, amounts, 1)
        if amounts is None:
            self.taken |= 1 << device
            self.mine[option.claim] |= 1 << device
        self.picks.append(Pick(option.index, device, amounts))
        self.in_claim[option.claim] += 1
        return before

    def give_back(self, option: Option, device: int, before: tuple[Values | None, ...]) -> None:
        pick = self.picks.pop()
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
        states: list[Values] = []
        values = self.layout.traits[device].values
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
        if self.layout.pool_of[device] in self.overdrawn:
            return False
        return all(self.left[counter] >= amount for counter, amount in consumes)

    def _is_charged(self, device: int) -> bool:
        return device in self.charged and self.layout.traits[device].shared

    def _has_room(self, device: int, amounts: Amounts, drawn: Mapping[str, int]) -> bool:
        used, capacity = self.used.get(device, {}), dict(self.layout.traits[device].capacity)
        return all(used.get(name, 0) + drawn.get(name, 0) + amount <= capacity[name] for name, amount in amounts)

    def spent(self, option: Option) -> int:
        """The shared devices that have not enough capacity left for a share of this option."""
        found = self._spent.get(option.index)
        if found is None:
            # What the ledger has does not change during a search, so it is looked at without what was drawn since.
            full = [
                each for each in self.used if each in option.takes and not self._has_room(each, option.takes[each], {})
            ]
            found = self._spent[option.index] = sum(1 << each for each in full)
        for device, drawn in self.drawn.items():
            if device in option.takes and not self._has_room(device, option.takes[device], drawn):
                found |= 1 << device
        return found

    def _charge(self, device: int, amounts: Amounts | None, sign: int) -> None:
        """Counters are charged with the first share of a device and come off with the last."""
        shares = self.charged.get(device, 0) if amounts is not None else 0
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
        if not self.charged[device]:
            del self.charged[device]
        drawn = self.drawn.setdefault(device, {})
        for name, amount in amounts:
            drawn[name] = drawn.get(name, 0) + sign * amount
        # Only what the ledger has is left: this search draws nothing from the device any more.
        if self.charged.get(device, 0) == (device in self.used):
            del self.drawn[device]

    def _overdrawn(self) -> frozenset[int]:
        """Pools with a counter below zero: what is in use does not fit what is published; nothing more is charged."""
        return frozenset(self.layout.counters[counter][0] for counter in self.short if self.left[counter] < 0)


def held_devices(layout: Layout, usages: Sequence[Usage]) -> tuple[int, dict[int, dict[str, int]]]:
    """Devices that are in use whole, and what is used of those that are shared.

    A device that was shared and is dedicated now is not available while any share of it is left.
    """
    held, used = 0, {}
    for offset, usage in zip(layout.offsets, usages, strict=True):
        held |= usage.busy << offset
        for position, amounts in usage.shares.items():
            if layout.traits[offset + position].shared:
                used[offset + position] = dict(amounts)
            else:
                held |= 1 << (offset + position)
    return held, used
