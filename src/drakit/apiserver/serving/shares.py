"""Fair shares: one user's requests queue behind their own.

In:  requests, each with its user, before they are handled.
Out: a turn for each, at once or after others of the same user; 429 for what is beyond a user's share, or beyond all.

This is priority and fairness in a simple form. There are two lanes. Components of the cluster have one of their own, so
that no user's load keeps a node from renewing its lease. In the other lane each user is a flow.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from functools import partial

from drakit.api.exchange import User
from drakit.apiserver.auth.identities import is_component
from drakit.apiserver.failures import too_many_requests
from drakit.apiserver.http.turns import Turns

_MIB = 1024 * 1024
_PASSED_TOGETHER = 4
"""Requests that have waited and go on in the same turn of the loop: many writes end together, with their commit."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How many requests may be in flight, in each lane. Watches do not count: while they wait they cost nothing."""

    reading: int = 400
    writing: int = 200
    per_user: int = 32
    """Requests of one user that are handled at the same time. More of them wait, up to half of all."""
    watches_per_user: int = 1000
    bodies: int = 64 * _MIB
    """Bytes of all bodies in flight. One user may have a quarter of them."""


class _Flow:
    """The requests of one user. Invariant: `running` is less than the limit, or `waiting` may have some."""

    __slots__ = ("count", "running", "waiting")

    def __init__(self) -> None:
        self.count = 0
        self.running = 0
        # Made when somebody waits: a flow lives as long as its requests, which is one request for most.
        self.waiting: deque[asyncio.Future[None]] | None = None


class Lane:
    """Requests of one type: reads or writes, of users or of components."""

    def __init__(self, total: int, per_user: int) -> None:
        self._total = total
        self._per_user = per_user
        # A lane of two is for both of one user: tests and toys.
        self._per_flow = max(total // 2, 2) if per_user < total else total
        self._flows: dict[str, _Flow] = {}
        self._turns = Turns(_PASSED_TOGETHER)
        self.count = 0

    def enter(self, name: str) -> asyncio.Future[None] | None:
        """Take the user's turn; what comes back, if anything, is what to `wait` for.

        Raise 429 when too many of its requests wait already, or too many of all.
        """
        flow = self._flows.get(name) or _Flow()
        if self.count >= self._total or flow.count >= self._per_flow:
            raise too_many_requests()
        self._flows[name] = flow
        self.count += 1
        flow.count += 1
        if flow.running < self._per_user:
            flow.running += 1
            return None
        turn = asyncio.get_running_loop().create_future()
        if flow.waiting is None:
            flow.waiting = deque()
        flow.waiting.append(turn)
        return turn

    async def wait(self, name: str, turn: asyncio.Future[None]) -> None:
        """Wait for a turn that did not come at once."""
        flow = self._flows[name]
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._pass_on(name, flow)  # the turn came, and nobody takes it
            # Not if somebody left between the cancellation and now, and passed over this turn.
            elif flow.waiting and turn in flow.waiting:
                flow.waiting.remove(turn)
            self._uncount(name, flow)
            raise

    def leave(self, name: str) -> None:
        flow = self._flows[name]
        self._pass_on(name, flow)
        self._uncount(name, flow)

    def _pass_on(self, name: str, flow: _Flow) -> None:
        if flow.waiting:
            self._turns.take(name, partial(self._give, flow))
        else:
            flow.running -= 1

    def _give(self, flow: _Flow) -> None:
        """Let the next one in."""
        while flow.waiting:
            turn = flow.waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        flow.running -= 1

    def _uncount(self, name: str, flow: _Flow) -> None:
        self.count -= 1
        flow.count -= 1
        if not flow.count:
            del self._flows[name]


class BodyBudget:
    """The bytes of bodies in flight, in all and of each user."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._per_user = total // 4
        self._used: dict[str, int] = {}
        self.used = 0

    def take(self, name: str, size: int) -> None:
        """Raise 429 when there is no room for so many bytes more."""
        own = self._used.get(name, 0) + size
        if self.used + size > self._total or own > self._per_user:
            raise too_many_requests()
        self._used[name] = own
        self.used += size

    def give_back(self, name: str, size: int) -> None:
        self.used -= size
        left = self._used.get(name, 0) - size
        if left:
            self._used[name] = left
        else:
            self._used.pop(name, None)


class Shares:
    """The lanes and the budget of one server."""

    def __init__(self, limits: Limits) -> None:
        self.users = {True: Lane(limits.reading, limits.per_user), False: Lane(limits.writing, limits.per_user)}
        self.components = {True: Lane(limits.reading, limits.reading), False: Lane(limits.writing, limits.writing)}
        self.bodies = BodyBudget(limits.bodies)

    def lane(self, user: User, *, reading: bool) -> Lane:
        return (self.components if is_component(user) else self.users)[reading]

    def inflight(self, *, reading: bool) -> int:
        return self.users[reading].count + self.components[reading].count
