"""The search: the first solution in the specified depth-first, first-fit order.

In:  a layout (the node's devices as one plan sees them) and its occupancy: what others use of it.
Out: a SearchAnswer in terms of positions: which devices, or why there is none.

Claims, requests, alternatives and devices are tried in order; within a request devices are taken in rising order. Two
things cut the tree without changing the answer:
- bounds: a subtree is left when it provably holds no solution. That is done only where no selector error and no other
  abort can hide below (`Outlook._safe_until`), because these count as soon as the search reaches them.
- memory: a state of remaining choices that failed once fails again. Devices that stand for each other are counted, not
  named.
"""

from __future__ import annotations

from enum import Enum

from drakit.allocator.inventory.attributes import Values
from drakit.allocator.search.answer import HasExpired, SearchAnswer, SearchResult
from drakit.allocator.search.bounds import Outlook
from drakit.allocator.search.layouts import bits_of
from drakit.allocator.search.occupancy import Occupancy
from drakit.allocator.search.options import Option
from drakit.allocator.search.plans import MAX_RESULTS
from drakit.allocator.search.state import SearchState

_MAX_REMEMBERED = 500_000
_DEADLINE_EVERY = 64


class Subtree(Enum):
    """What a subtree came to."""

    SOLVED = 1
    FAILED = 2
    EXCEEDED = 3  # no choice of the requests from here on stays within the limit of the claim


class Stop(Exception):
    """Ends the search with an answer."""

    def __init__(self, answer: SearchAnswer) -> None:
        self.answer = answer


class _Choice:
    """A request whose alternatives are tried in order."""

    __slots__ = ("gave_up", "next", "request")

    def __init__(self, request: int) -> None:
        self.request = request
        self.next = 0
        self.gave_up = 0


class _Fill:
    """A request of which `have` devices are taken; the next one is searched among `left`."""

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


class Search(SearchState):
    """One run."""

    def __init__(self, outlook: Outlook, occupancy: Occupancy, expired: HasExpired | None) -> None:
        super().__init__(occupancy)
        self.outlook = outlook
        self.expired = expired
        self.steps = 0
        self.chosen = [-1] * len(outlook.layout.plan.requests)
        self.failed: dict[tuple[int, int], dict[object, Subtree]] = {}
        self.remembered = 0

    def run(self) -> SearchAnswer:
        try:
            found = self._solve()
        except Stop as stop:
            return stop.answer
        if found is Subtree.SOLVED:
            return SearchAnswer(SearchResult.FOUND, self.steps, tuple(self.picks), tuple(self.chosen))
        return SearchAnswer(SearchResult.NONE, self.steps)

    def _solve(self) -> Subtree:
        """Depth first, with a stack of our own: claims may ask for more devices than Python's stack is deep."""
        stack: list[Frame] = []
        outcome = self._enter_request(stack, 0)
        # A frame gets the outcome of the frame above it, until it has tried everything.
        while stack:
            frame = stack[-1]
            if outcome is Subtree.SOLVED:
                return outcome
            if isinstance(frame, _Fill):
                outcome = self._fill(stack, frame, outcome)
            elif isinstance(frame, _Choice):
                outcome = self._choose(stack, frame, outcome)
            else:
                outcome = self._leave_whole(stack, frame, outcome)
        return outcome or Subtree.FAILED

    # Each returns None after it pushed a frame, otherwise the outcome of the frame that it popped or never pushed.

    def _enter_request(self, stack: list[Frame], request: int) -> Subtree | None:
        if request >= len(self.outlook.options):
            return Subtree.SOLVED
        if self.outlook.hopeless(self, request):
            return Subtree.FAILED
        stack.append(_Choice(request))
        return None

    def _choose(self, stack: list[Frame], frame: _Choice, outcome: Subtree | None) -> Subtree | None:
        options = self.outlook.options[frame.request]
        while True:
            # None when the request is entered; after that, the outcome of the alternative that was tried last.
            frame.gave_up += outcome is Subtree.EXCEEDED
            if frame.next == len(options):
                stack.pop()
                return self._give_up(frame, len(options))
            option = options[frame.next]
            frame.next += 1
            self.chosen[frame.request] = option.index
            outcome = self._enter_option(stack, option)
            if outcome is None or outcome is Subtree.SOLVED:
                return outcome

    def _give_up(self, frame: _Choice, alternatives: int) -> Subtree:
        """Too many devices in every alternative is told to the request before, but never to the claim before."""
        starts_claim = frame.request in self.outlook.claim_starts
        return Subtree.EXCEEDED if frame.gave_up == alternatives and not starts_claim else Subtree.FAILED

    def _enter_option(self, stack: list[Frame], option: Option) -> Subtree | None:
        if option.takes_all and not option.count:
            return Subtree.FAILED
        # Checked before any device is tried: upstream counts what is asked for, not what could be had.
        if option.count and self.in_claim[option.claim] + option.count > MAX_RESULTS:
            return Subtree.EXCEEDED
        if option.takes_all:
            return self._enter_whole(stack, option)
        return self._enter_fill(stack, option, 0, -1)

    def _enter_fill(self, stack: list[Frame], option: Option, have: int, above: int) -> Subtree | None:
        if have >= option.count:
            return self._enter_request(stack, option.request + 1)
        self._step()
        # Devices of a request are taken in rising order: each combination is looked at once.
        left = self.outlook.candidates(self, option) & -1 << (above + 1)
        if self.outlook.too_few(self, option, have, left):
            return Subtree.FAILED
        frame = _Fill(option, have, left)
        # The key costs more than the look-up: it is made only where something failed before.
        known = self.failed.get((option.index, have))
        if known:
            frame.key = self.outlook.key(self, option, left)
            if outcome := known.get(frame.key):
                return outcome
        stack.append(frame)
        return None

    def _fill(self, stack: list[Frame], frame: _Fill, outcome: Subtree | None) -> Subtree | None:
        option = frame.option
        while True:
            if frame.taken >= 0 and outcome is not None:
                self.give_back(option, frame.taken, frame.before)
                frame.taken = -1
                # Another device does not change how many the claim asks for: upstream stops here as well.
                if outcome is Subtree.EXCEEDED:
                    return self._leave_fill(stack, frame, outcome)
            if not frame.left:
                return self._leave_fill(stack, frame, Subtree.FAILED)
            # The lowest bit that is set: devices are tried in the order of evaluation, which is part of the answer.
            low = frame.left & -frame.left
            frame.left ^= low
            device = low.bit_length() - 1
            if low & option.failing:
                # A selector that fails ends the allocation as soon as the search reaches the device, as upstream: the
                # order of the search is therefore visible to users, and pruning must not change it.
                raise Stop(self._stopped(SearchResult.SELECTOR, option, device))
            before = self.take(option, device)
            if before is None:
                continue
            frame.taken, frame.before = device, before
            outcome = self._enter_fill(stack, option, frame.have + 1, device)
            if outcome is None or outcome is Subtree.SOLVED:
                return outcome

    def _leave_fill(self, stack: list[Frame], frame: _Fill, outcome: Subtree) -> Subtree:
        stack.pop()
        # Bounded: forgetting costs time in a hard search, never the right answer.
        if self.remembered < _MAX_REMEMBERED:
            self.remembered += 1
            # Everything was given back: the state is the one in which the frame was entered.
            key = frame.key or self.outlook.key(self, frame.option, frame.first)
            self.failed.setdefault((frame.option.index, frame.have), {})[key] = outcome
        return outcome

    def _enter_whole(self, stack: list[Frame], option: Option) -> Subtree | None:
        """All devices or none: the order does not matter, so one that cannot be had ends it."""
        self._step()
        frame = _Whole(option)
        blocked = self.mine[option.claim] if option.admin else self.held | self.taken
        for device in bits_of(option.selected):
            bit = 1 << device
            before = None
            if not bit & blocked and bit & option.usable and self.counters_suffice(device):
                if self._constrained(option, device) is None:
                    raise Stop(
                        SearchAnswer(SearchResult.CONSTRAINT, self.steps, alternative=option.index, subject=device)
                    )
                before = self.take(option, device)
            if before is None:
                self._give_back_all(frame)
                return Subtree.FAILED
            frame.undo.append((device, before))
        stack.append(frame)
        outcome = self._enter_request(stack, option.request + 1)
        return outcome if outcome is None or outcome is Subtree.SOLVED else self._leave_whole(stack, frame, outcome)

    def _leave_whole(self, stack: list[Frame], frame: _Whole, outcome: Subtree | None) -> Subtree:
        stack.pop()
        self._give_back_all(frame)
        return outcome or Subtree.FAILED

    def _give_back_all(self, frame: _Whole) -> None:
        for device, before in reversed(frame.undo):
            self.give_back(frame.option, device, before)

    def _stopped(self, result: SearchResult, option: Option, device: int) -> SearchAnswer:
        return SearchAnswer(result, self.steps, alternative=option.index, subject=device)

    def _step(self) -> None:
        self.steps += 1
        if self.expired is not None and self.steps % _DEADLINE_EVERY == 0 and self.expired():
            raise Stop(SearchAnswer(SearchResult.DEADLINE, self.steps))
