"""The search: the first solution in the specified depth-first, first-fit order.

In:  a layout (the node's devices as one plan sees them) and what is in use of each pool.
Out: an Answer in terms of positions: which devices, or why there is none.

Claims, requests, alternatives and devices are tried in order; within a request devices are taken in rising order. Two
things cut the tree without changing the answer:
- bounds: a subtree is left when it provably holds no solution. That is done only where no selector error and no other
  abort can hide below (`Outlook._safe_until`), because these count as soon as the search reaches them.
- memory: a state of remaining choices that failed once fails again. Devices that stand for each other are counted, not
  named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from drakit.allocator.search.bounds import outlook_of
from drakit.allocator.search.constraints import Values
from drakit.allocator.search.layouts import Amounts, Layout, bits_of
from drakit.allocator.search.plans import MAX_RESULTS

if TYPE_CHECKING:
    from drakit.allocator.inventory.ledger import Usage
    from drakit.allocator.search.bounds import Option

_MAX_REMEMBERED = 500_000
_DEADLINE_EVERY = 64

Expired = Callable[[], bool]


class Verdict(Enum):
    FOUND = "found"
    NONE = "none"
    SELECTOR = "selector"  # a selector failed on a device that the search reached
    CONSTRAINT = "constraint"  # All includes a device that a constraint forbids
    POOL = "pool"  # All was asked for and a pool is incomplete or invalid
    LIMIT = "limit"  # the claim wants more devices than a result can hold
    REFUSED = "refused"  # the claims cannot be allocated anywhere
    DEADLINE = "deadline"


@dataclass(frozen=True, slots=True)
class Pick:
    alternative: int
    device: int
    consumed: Amounts | None


@dataclass(frozen=True, slots=True)
class Answer:
    """`chosen` is the alternative of each request.

    `alternative`, `subject` (a device, pool or number) and `claim` say what a failure is about.
    """

    verdict: Verdict
    steps: int = 0
    picks: tuple[Pick, ...] = ()
    chosen: tuple[int, ...] = ()
    alternative: int = -1
    subject: int = -1
    claim: int = -1
    message: str = ""


class Outcome(Enum):
    SOLVED = 1
    FAILED = 2
    EXCEEDED = 3  # no choice of the requests from here on stays within the limit of the claim


class Stop(Exception):
    """Ends the search with an answer."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer


class _Choice:
    """A request whose alternatives are tried in order."""

    __slots__ = ("gave_up", "next", "request")

    def __init__(self, request: int) -> None:
        self.request = request
        self.next = 0
        self.gave_up = 0


class _Fill:
    """The device number `have` of an option is looked for among `left`."""

    __slots__ = ("before", "first", "have", "key", "left", "option", "taken")

    def __init__(self, option: Option, have: int, left: int) -> None:
        self.option = option
        self.have = have
        self.left = left
        self.first = left
        self.taken = -1
        self.key: object = None
        self.before: tuple[Values | None, ...] = ()


class _Whole:
    """All devices of an option at once."""

    __slots__ = ("option", "undo")

    def __init__(self, option: Option) -> None:
        self.option = option
        self.undo: list[tuple[int, tuple[Values | None, ...]]] = []


Frame = _Choice | _Fill | _Whole


class Search:
    """One run. State is changed by `take` and restored by `give_back`, always in pairs."""

    def __init__(self, layout: Layout, usages: Sequence[Usage], expired: Expired | None) -> None:
        self.layout = layout
        self.expired = expired
        self.steps = 0
        self.picks: list[Pick] = []
        self.chosen = [-1] * len(layout.plan.requests)
        self.in_claim = [0] * layout.plan.claims
        self.taken = 0
        self.mine = [0] * layout.plan.claims
        self.states: list[Values | None] = [None] * len(layout.plan.constraints)
        self.held, self.used = _held(layout, usages)
        self.outlook = outlook_of(layout, self.held)
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
        self.failed: dict[tuple[int, int], dict[object, Outcome]] = {}
        self.remembered = 0

    def run(self) -> Answer:
        try:
            found = self._solve()
        except Stop as stop:
            return stop.answer
        if found is Outcome.SOLVED:
            return Answer(Verdict.FOUND, self.steps, tuple(self.picks), tuple(self.chosen))
        return Answer(Verdict.NONE, self.steps)

    def _solve(self) -> Outcome:
        """Depth first, with a stack of our own: claims may ask for more devices than Python's stack is deep."""
        stack: list[Frame] = []
        outcome = self._enter_request(stack, 0)
        while stack:
            frame = stack[-1]
            if outcome is Outcome.SOLVED:
                return outcome
            if isinstance(frame, _Fill):
                outcome = self._fill(stack, frame, outcome)
            elif isinstance(frame, _Choice):
                outcome = self._choose(stack, frame, outcome)
            else:
                outcome = self._leave_whole(stack, frame, outcome)
        return outcome or Outcome.FAILED

    # Each returns None after it pushed a frame, otherwise the outcome of the frame that it popped or never pushed.

    def _enter_request(self, stack: list[Frame], request: int) -> Outcome | None:
        if request >= len(self.outlook.options):
            return Outcome.SOLVED
        if self.outlook.hopeless(self, request):
            return Outcome.FAILED
        stack.append(_Choice(request))
        return None

    def _choose(self, stack: list[Frame], frame: _Choice, outcome: Outcome | None) -> Outcome | None:
        options = self.outlook.options[frame.request]
        while True:
            frame.gave_up += outcome is Outcome.EXCEEDED
            if frame.next == len(options):
                stack.pop()
                return self._give_up(frame, len(options))
            option = options[frame.next]
            frame.next += 1
            self.chosen[frame.request] = option.index
            outcome = self._enter_option(stack, option)
            if outcome is None or outcome is Outcome.SOLVED:
                return outcome

    def _give_up(self, frame: _Choice, alternatives: int) -> Outcome:
        """Too many devices in every alternative is told to the request before, but never to the claim before."""
        starts_claim = frame.request in self.outlook.claim_starts
        return Outcome.EXCEEDED if frame.gave_up == alternatives and not starts_claim else Outcome.FAILED

    def _enter_option(self, stack: list[Frame], option: Option) -> Outcome | None:
        if option.takes_all and not option.count:
            return Outcome.FAILED
        if option.count and self.in_claim[option.claim] + option.count > MAX_RESULTS:
            return Outcome.EXCEEDED
        if option.takes_all:
            return self._enter_whole(stack, option)
        return self._enter_fill(stack, option, 0, -1)

    def _enter_fill(self, stack: list[Frame], option: Option, have: int, above: int) -> Outcome | None:
        if have >= option.count:
            return self._enter_request(stack, option.request + 1)
        self._step()
        left = self.outlook.candidates(self, option) & -1 << (above + 1)
        if self.outlook.too_few(self, option, have, left):
            return Outcome.FAILED
        frame = _Fill(option, have, left)
        known = self.failed.get((option.index, have))
        if known:
            frame.key = self.outlook.key(self, option, left)
            if outcome := known.get(frame.key):
                return outcome
        stack.append(frame)
        return None

    def _fill(self, stack: list[Frame], frame: _Fill, outcome: Outcome | None) -> Outcome | None:
        option = frame.option
        while True:
            if frame.taken >= 0 and outcome is not None:
                self.give_back(option, frame.taken, frame.before)
                frame.taken = -1
                if outcome is Outcome.EXCEEDED:
                    return self._leave_fill(stack, frame, outcome)
            if not frame.left:
                return self._leave_fill(stack, frame, Outcome.FAILED)
            low = frame.left & -frame.left
            frame.left ^= low
            device = low.bit_length() - 1
            if low & option.failing:
                raise Stop(Answer(Verdict.SELECTOR, self.steps, alternative=option.index, subject=device))
            before = self.take(option, device)
            if before is None:
                continue
            frame.taken, frame.before = device, before
            outcome = self._enter_fill(stack, option, frame.have + 1, device)
            if outcome is None or outcome is Outcome.SOLVED:
                return outcome

    def _leave_fill(self, stack: list[Frame], frame: _Fill, outcome: Outcome) -> Outcome:
        stack.pop()
        if self.remembered < _MAX_REMEMBERED:
            self.remembered += 1
            # Everything was given back: the state is the one in which the frame was entered.
            key = frame.key or self.outlook.key(self, frame.option, frame.first)
            self.failed.setdefault((frame.option.index, frame.have), {})[key] = outcome
        return outcome

    def _enter_whole(self, stack: list[Frame], option: Option) -> Outcome | None:
        """All devices or none: the order does not matter, so one that cannot be had ends it."""
        self._step()
        frame = _Whole(option)
        blocked = self.mine[option.claim] if option.admin else self.held | self.taken
        for device in bits_of(option.selected):
            bit = 1 << device
            before = None
            if not bit & blocked and bit & option.usable and self.counters_suffice(device):
                if self._constrained(option, device) is None:
                    raise Stop(Answer(Verdict.CONSTRAINT, self.steps, alternative=option.index, subject=device))
                before = self.take(option, device)
            if before is None:
                self._give_back_all(frame)
                return Outcome.FAILED
            frame.undo.append((device, before))
        stack.append(frame)
        outcome = self._enter_request(stack, option.request + 1)
        return outcome if outcome is None or outcome is Outcome.SOLVED else self._leave_whole(stack, frame, outcome)

    def _leave_whole(self, stack: list[Frame], frame: _Whole, outcome: Outcome | None) -> Outcome:
        stack.pop()
        self._give_back_all(frame)
        return outcome or Outcome.FAILED

    def _give_back_all(self, frame: _Whole) -> None:
        for device, before in reversed(frame.undo):
            self.give_back(frame.option, device, before)

    # One device

    def take(self, option: Option, device: int) -> tuple[Values | None, ...] | None:
        """Use the device, and return the constraint states as they were; None when it cannot be used now."""
        if not self.counters_suffice(device):
            return None
        amounts = option.takes.get(device)
        if amounts is not None and not self._has_room(device, amounts, self.drawn.get(device, {})):
            return None
        states = self._constrained(option, device)
        if states is None:
            return None
        before = tuple(self.states[each.index] for each in option.constraints)
        for each, state in zip(option.constraints, states, strict=True):
            self.states[each.index] = state
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
        if self.charged.get(device, 0) == (device in self.used):
            del self.drawn[device]

    def _overdrawn(self) -> frozenset[int]:
        """Pools with a counter below zero: what is in use does not fit what is published; nothing more is charged."""
        return frozenset(self.layout.counters[counter][0] for counter in self.short if self.left[counter] < 0)

    def _step(self) -> None:
        self.steps += 1
        if self.expired is not None and self.steps % _DEADLINE_EVERY == 0 and self.expired():
            raise Stop(Answer(Verdict.DEADLINE, self.steps))


def _held(layout: Layout, usages: Sequence[Usage]) -> tuple[int, dict[int, dict[str, int]]]:
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
