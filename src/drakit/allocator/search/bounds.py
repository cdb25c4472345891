"""Bounds: what the search may leave out, and what it has to remember.

In:  a layout, and the state of a running search.
Out: the devices worth trying for a request, whether a subtree is hopeless, and the key of a state: two states with the
     same key have the same future.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from drakit.allocator.inventory.attributes import Values
from drakit.allocator.search.constraints import Constraint
from drakit.allocator.search.layouts import Layout
from drakit.allocator.search.options import Option, option_of
from drakit.allocator.search.plans import MAX_RESULTS
from drakit.allocator.search.state import SearchState
from drakit.allocator.search.symmetry import Symmetry

# Per request, per alternative: the devices that may be had, and how many are wanted.
Offers = Sequence[Sequence[tuple[int, int]]]


class Outlook:
    """What lies ahead of each request on a layout.

    `held` are devices that the search cannot reach, except as admin. Without bounds nothing counts as hopeless.
    """

    def __init__(self, layout: Layout, held: int = 0, *, bounded: bool = True, admin_room: bool = True) -> None:
        self.layout = layout
        self.bounded = bounded
        plan = layout.plan
        self.options = tuple(
            tuple(option_of(layout, each.index, held, admin_room=admin_room) for each in request.alternatives)
            for request in plan.requests
        )
        self.claims = tuple(request.claim for request in plan.requests)
        self.claim_starts = frozenset(
            index for index in range(1, len(self.claims)) if self.claims[index] != self.claims[index - 1]
        )
        # In this order: `may_prune` reads `can_exceed`.
        self.can_exceed = self._can_exceed()
        self.may_prune = self._may_prune()
        self._symmetry: Symmetry | None = None
        self._exact: bool | None = None
        self.future = [self._future(request) for request in range(len(self.options))]

    # Soundness

    def _may_prune(self) -> list[bool]:
        """Whether the subtree from each request on may be cut in any state.

        It may not when something in it may abort. Nor when a claim can exceed its limit and any request may abort: that
        request must see `EXCEEDED` exactly when the full search would, because it stops trying then.
        """
        clean = [not any(_may_abort(option) for option in options) for options in self.options]
        # Where a claim may exceed its limit, cutting would hide from the requests above why a subtree failed.
        everywhere = all(clean) or not self.can_exceed
        return [everywhere and all(clean[request:]) for request in range(len(clean))]

    def _safe_until(self, search: SearchState, request: int) -> int:
        """The first request from here on that may abort in this state; up to it, a subtree may be cut.

        What a selector fails on is out of reach once it is taken, and further down more is taken, never less.
        """
        if request >= len(self.options) or self.may_prune[request]:
            return len(self.options)
        if self.can_exceed:
            return request
        for later in range(request, len(self.options)):
            if any(_may_abort(option, search) for option in self.options[later]):
                return later
        return len(self.options)

    def _can_exceed(self) -> bool:
        most = [0] * self.layout.plan.claims
        for claim, options in zip(self.claims, self.options, strict=True):
            most[claim] += max(option.count for option in options)
        return max(most, default=0) > MAX_RESULTS

    # Both are worked out when the first search fails somewhere: with thousands of devices they are the dearest part.

    @property
    def symmetry(self) -> Symmetry:
        if self._symmetry is None:
            self._symmetry = Symmetry(self.layout)
        return self._symmetry

    @property
    def exact(self) -> bool:
        if self._exact is None:
            self._exact = self._needs_exact_keys()
        return self._exact

    def _needs_exact_keys(self) -> bool:
        """Whether keys must name each device, instead of counting interchangeable ones.

        Counting is sound only where the order of taking does not matter. It matters where something may abort, and
        where a value that cannot be compared is accepted only as the first.
        """
        if any(_may_abort(option) for options in self.options for option in options):
            return True
        odd = any(
            self.layout.having[each.index] != self.layout.comparable[each.index]
            for each in self.layout.plan.constraints
        )
        return odd or not self.symmetry.helps

    def _future(self, request: int) -> _Future:
        rest = [option for options in self.options[request:] for option in options]
        here = [option for option in rest if option.claim == self.claims[request]]
        wanted = reduce(
            or_, (option.usable | option.failing | option.selected for option in rest if not option.admin), 0
        )
        admin = reduce(or_, (option.usable | option.failing | option.selected for option in here if option.admin), 0)
        anything = reduce(or_, (option.usable | option.selected for option in rest), 0)
        live = {each.index for option in here for each in option.constraints}
        linked = [later for later in range(request + 1, len(self.options)) if self._affects(request, later)]
        needs = sum(min(option.count for option in options) for options in self.options[request:])
        # A request takes something of a budget when each of its options does: those of the first one will do.
        budgets = dict.fromkeys(budget for options in self.options[request:] for budget in options[0].drains)
        drains = [(budget, self._drain(request, budget)) for budget in budgets]
        # Admin access and shares can use a device that others use: then counting free devices proves nothing.
        mergeable = not any(option.admin for option in rest) and not wanted & self.layout.shared
        return _Future(
            wanted,
            admin,
            tuple(sorted(live)),
            bool(anything & self.layout.consumers),
            bool(anything & self.layout.shared),
            tuple(linked),
            needs if mergeable else 0,
            tuple((budget, amount) for budget, amount in drains if amount),
            tuple(self._spans(request)),
        )

    def _spans(self, request: int) -> Iterator[tuple[Constraint, tuple[int, ...]]]:
        """The constraints ahead, each with the requests that come under it whichever alternative serves them."""
        for constraint in self.layout.plan.constraints:
            under = [
                later
                for later in range(request, len(self.options))
                if all(constraint in option.constraints for option in self.options[later])
            ]
            if under:
                yield constraint, tuple(under)

    def _affects(self, request: int, later: int) -> bool:
        """Whether devices for one request can leave a later one without: by being taken, by constraint, by counters."""
        ours, theirs = (reduce(or_, (each.usable for each in self.options[both]), 0) for both in (request, later))
        if ours & theirs or (ours & self.layout.consumers and theirs & self.layout.consumers):
            return True
        constrained = {each.index for option in self.options[request] for each in option.constraints}
        return any(each.index in constrained for option in self.options[later] for each in option.constraints)

    def _drain(self, request: int, budget: tuple[int, ...]) -> int:
        """What the requests from one on take of a budget at least."""
        return sum(min(each.least(budget, each.count) for each in options) for options in self.options[request:])

    # Candidates

    def candidates(self, search: SearchState, option: Option) -> int:
        """The devices that may be taken now, or on which a selector fails; the other ones would be passed over."""
        found = search.candidates.get(option.index)
        if found is None:
            found = search.candidates[option.index] = self._candidates(search, option)
        return found

    def _candidates(self, search: SearchState, option: Option) -> int:
        blocked = search.mine[option.claim] if option.admin else search.held | search.taken
        usable = option.usable & self.compatible(search, option)
        # Most clusters have neither counters nor shared devices: they skip the dearest part of this.
        if option.is_scarce:
            usable &= ~search.unaffordable(option)
        return (usable | option.failing) & ~blocked

    def compatible(self, search: SearchState, option: Option) -> int:
        """The devices that the constraints accept in their present state."""
        mask = -1
        for each in option.constraints:
            mask &= self._accepted(each, search.states[each.index])
        return mask

    def _accepted(self, constraint: Constraint, state: Values | None) -> int:
        layout = self.layout
        if state is None:
            exact = constraint.lists and not constraint.distinct
            return (layout.comparable if exact else layout.having)[constraint.index]
        masks = layout.value_masks[constraint.index]
        named = reduce(or_, (masks.get(value, 0) for value in state), 0)
        return layout.comparable[constraint.index] & ~named if constraint.distinct else named

    # Bounds: each says True only when no solution can be below

    def hopeless(self, search: SearchState, request: int) -> bool:
        """Whether some request from here on cannot be served by what is free now."""
        if not self.bounded:
            return False
        until = self._safe_until(search, request)
        if until == len(self.options) and self._used_up(search, self.future[request]):
            return True
        if any(not self._servable(search, later) for later in range(request, until)):
            return True
        return self._unalignable(search, request, until)

    def _used_up(self, search: SearchState, future: _Future) -> bool:
        """Whether all that is free is too little for all that is wanted."""
        if future.needs and (future.wanted & ~search.held & ~search.taken).bit_count() < future.needs:
            return True
        return any(_rest(search, budget) < amount for budget, amount in future.drains)

    def _servable(self, search: SearchState, request: int) -> bool:
        return any(self._may_serve(search, option) for option in self.options[request])

    def _may_serve(self, search: SearchState, option: Option) -> bool:
        candidates = self.candidates(search, option)
        if option.takes_all:
            return bool(option.selected) and not option.selected & ~candidates
        return candidates.bit_count() >= option.count

    def too_few(self, search: SearchState, option: Option, have: int, left: int) -> bool:
        """Whether `left` cannot hold the devices that are still needed, or a later request goes without.

        Where `left` does not suffice, later requests are not reached at all: what may abort there does not matter.
        """
        # A device on which a selector fails aborts the search when it is reached: it must be reached.
        if not self.bounded or left & option.failing:
            return False
        return self._insufficient(search, option, option.count - have, left) or (
            have > 0 and self._strands(search, option.request)
        )

    def _strands(self, search: SearchState, request: int) -> bool:
        """Whether the devices taken for one request leave a later one without."""
        until = self._safe_until(search, request + 1)
        # Where nothing could ever abort, requests that these devices do not concern were looked at before.
        later = self.future[request].linked if self.may_prune[request] else range(request + 1, until)
        if any(not self._servable(search, each) for each in later):
            return True
        return bool(later) and self._unalignable(search, request + 1, until)

    def _unalignable(self, search: SearchState, request: int, until: int) -> bool:
        """Whether some constraint cannot hold between the requests up to one that may abort."""
        for constraint, under in self.future[request].spans:
            options = [self.options[each] for each in under if each < until]
            if sum(min(option.count for option in each) for each in options) > 1:
                offers = [[(self.candidates(search, option), option.count) for option in each] for each in options]
                if not self._alignable(constraint, search.states[constraint.index], offers):
                    return True
        return False

    def _alignable(self, constraint: Constraint, state: Values | None, offers: Offers) -> bool:
        """Whether requests may have values in common, or values enough that differ. Each offers devices and a count."""
        masks = self.layout.value_masks[constraint.index]
        if not constraint.distinct:
            # A value that all have in common is one of the first request's, wherever that finds its devices.
            first = reduce(or_, (devices for devices, _ in offers[0]), 0)
            values = self.layout.values_among(constraint.index, first) if state is None else state
            common = (masks.get(value, 0) for value in values)
            return any(
                all(any((mask & devices).bit_count() >= count for devices, count in each) for each in offers)
                for mask in common
            )
        # A bound, not a decision: it may say yes where no solution exists, never no where one does.
        wanted = sum(min(count for _, count in each) for each in offers)
        offered = reduce(or_, (devices for each in offers for devices, _ in each), 0)
        return self._different(constraint, state, offered) >= wanted

    def _insufficient(self, search: SearchState, option: Option, needed: int, left: int) -> bool:
        if left.bit_count() < needed:
            return True
        if any(_rest(search, budget) < option.least(budget, needed) for budget in option.drains):
            return True
        return any(self._value_too_rare(each, search.states[each.index], needed, left) for each in option.constraints)

    def _value_too_rare(self, constraint: Constraint, state: Values | None, needed: int, left: int) -> bool:
        masks = self.layout.value_masks[constraint.index]
        if constraint.distinct:
            return self._different(constraint, state, left) < needed
        if state is None:
            among = self.layout.values_among(constraint.index, left)
            return needed > 1 and not any((masks[value] & left).bit_count() >= needed for value in among)
        return len(state) > 1 and not any((masks[value] & left).bit_count() >= needed for value in state)

    def _different(self, constraint: Constraint, state: Values | None, devices: int) -> int:
        """How many of the devices may differ from each other, and from those in the state."""
        index = constraint.index
        masks = self.layout.value_masks[index]
        different = sum(1 for value, mask in masks.items() if mask & devices and value not in (state or ()))
        # One device without a comparable value may come first.
        odd = devices & self.layout.having[index] & ~self.layout.comparable[index]
        return different + (state is None and bool(odd))

    # Memory

    def key(self, search: SearchState, option: Option, left: int) -> object:
        """What the future depends on: what may still be taken, and where constraints, counters and shares stand."""
        future = self.future[option.request]
        free = future.wanted & ~search.held & ~search.taken
        # What no later request can use must not tell two states apart.
        every = range(len(self.layout.counters))
        counters = [search.left[each] for each in every] if future.counters else [0] * len(every)
        if self.exact or option.admin or future.admin:
            devices: object = (left, free, search.mine[option.claim] & future.admin, tuple(counters))
        else:
            devices = self.symmetry.key(left, free, counters)
        return (
            devices,
            search.in_claim[option.claim] if self.can_exceed else 0,
            tuple([search.states[index] for index in future.live]),
            _shares(search) if future.shares else (),
        )


@dataclass(frozen=True, slots=True)
class _Future:
    """What the requests from one on can still use."""

    wanted: int
    """Devices that some request can use or would fail on; admin access apart."""
    admin: int
    """The same for admin access in the claim at hand: whose own devices matter to it."""
    live: tuple[int, ...]
    """Constraints of the claim that a later request is still under; the state of others does not matter any more."""
    counters: bool
    """Whether some request can use a device that takes something of a counter."""
    shares: bool
    """Whether some request can use a device that serves several allocations."""
    linked: tuple[int, ...]
    """Later requests that devices taken for this one can leave without any."""
    needs: int
    """Devices that all requests need at least; 0 where they may have devices in common."""
    drains: tuple[tuple[tuple[int, ...], int], ...]
    """Counters that are added up, with what the requests take of them at least."""
    spans: tuple[tuple[Constraint, tuple[int, ...]], ...]
    """Constraints with the requests that are under them whichever alternative is chosen."""


def _rest(search: SearchState, budget: tuple[int, ...]) -> int:
    """What is left of a budget. A counter below zero takes nothing from the others."""
    return sum(max(search.left[counter], 0) for counter in budget)


def _shares(search: SearchState) -> Sequence[object]:
    return tuple(
        sorted(
            (device, search.charged.get(device, 0), tuple(sorted(drawn.items())))
            for device, drawn in search.drawn.items()
        )
    )


def _may_abort(option: Option, search: SearchState | None = None) -> bool:
    """Whether an option may end the search: ever, or in the state of a search and below."""
    if option.takes_all and option.constraints:
        return True
    if search is None:
        return bool(option.failing)
    blocked = search.mine[option.claim] if option.admin else search.held | search.taken
    return bool(option.failing & ~blocked)
