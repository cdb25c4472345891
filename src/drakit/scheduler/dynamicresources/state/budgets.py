"""How long an attempt may look for devices on the loop, and who goes on beside it.

In:  an attempt whose claims cost more than a moment: selectors that take milliseconds per device, a long search.
Out: the answers, found in a thread and remembered where the next attempt at the pod finds them; or that the claims have
     had all the time that they get.

The scheduler decides on one loop, in `drakit up` the same that serves the API: nobody may hold it for long. An attempt
that is interrupted took nothing, so it can simply be made again: what it found out is remembered by shape and by look.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from weakref import WeakKeyDictionary

from drakit.allocator import Allocator, Inventory
from drakit.api.objects.claims import ResourceClaim
from drakit.base.clock import Clock

log = logging.getLogger("drakit.scheduler")

ON_LOOP = 0.015
"""Seconds of one attempt on the loop."""
PATIENCE = 3.0
"""Seconds from the beginning of a search that attempts wait for it. Then they go on with other pods."""
BRIEF = 0.3
"""The same for a search that begins soon after another one for which they waited: a pool that changed costs as much."""
_SHARE = 4
"""Soon after: before this many times as long has passed. Nobody's claims hold up all pods for long."""
_POLL = 0.005
_ROUNDS = 3
"""Timeouts of a node that all nodes together may take, beside the loop."""
_AGAIN = 60.0
"""Seconds after which claims that took too long get their time again: devices come and go."""


class AttemptBudget:
    """The time of one attempt. `begin` starts that of one node, which has its own limit."""

    def __init__(self, clock: Clock, per_node: float, on_loop: float) -> None:
        self._clock = clock
        self._per_node = per_node
        self._on_loop = on_loop
        self._ends: float | None = None
        self.interrupted = False
        """Whether the last node was left because the attempt had no time left, not because it had all of its own."""

    def spend(self) -> None:
        """Leave nothing of it: nodes whose answers are known still get them."""
        self._on_loop = 0.0

    def begin(self) -> Callable[[], bool]:
        now = self._clock.monotonic
        start = now()
        if self._ends is None:
            self._ends = start + self._on_loop
        node_ends, attempt_ends = start + self._per_node, self._ends

        def expired() -> bool:
            at = now()
            self.interrupted = at < node_ends and at >= attempt_ends
            return at >= node_ends or at >= attempt_ends

        return expired


class BackgroundSearch:
    """Works out answers in a thread, for one set of claims at a time."""

    def __init__(self, clock: Clock, per_node: float) -> None:
        self._clock = clock
        self._per_node = per_node
        self._under_way: object | None = None
        self._ends = 0.0
        self._rests_until = 0.0
        self._exhausted: WeakKeyDictionary[object, float] = WeakKeyDictionary()

    def is_exhausted(self, key: object) -> bool:
        """Whether the claims had their time lately, and it did not suffice."""
        since = self._exhausted.get(key)
        return since is not None and self._clock.monotonic() - since < _AGAIN

    def is_under_way(self, key: object) -> bool:
        """Whether the thread works for these claims."""
        return self._under_way is key

    async def finished(self) -> bool:
        """Wait for the thread, though not for long, and say whether it is done."""
        began = self._clock.monotonic()
        while self._under_way is not None and self._clock.monotonic() < self._ends:
            await self._clock.sleep(_POLL)
        now = self._clock.monotonic()
        self._rests_until = max(self._rests_until, now + _SHARE * (now - began))
        return self._under_way is None

    def begin(self, inventory: Inventory, claims: Sequence[ResourceClaim], nodes: Sequence[str]) -> None:
        """Look at all nodes, beside the loop; if a thread does that for other claims, these have to wait."""
        if self._under_way is not None:
            return
        now = self._clock.monotonic()
        self._ends = now + (PATIENCE if now >= self._rests_until else BRIEF)
        ends = now + _ROUNDS * self._per_node
        budget = AttemptBudget(self._clock, self._per_node, _ROUNDS * self._per_node)
        # The copy of the inventory is made here: the thread reads what nobody changes.
        allocator = Allocator(inventory, claims, timer=budget.begin)
        self._under_way = allocator.cost_key
        # A daemon: it ends by itself, and nobody waits for it when the process ends.
        threading.Thread(target=self._work, args=(allocator, nodes, ends), name="drakit-allocator", daemon=True).start()

    def _work(self, allocator: Allocator, nodes: Sequence[str], ends: float) -> None:
        try:
            for answer in allocator.answers(nodes):
                if answer.is_out_of_time or self._clock.monotonic() >= ends:
                    self._exhausted[allocator.cost_key] = self._clock.monotonic()
                if self._clock.monotonic() >= ends:
                    return
        except Exception:
            log.exception("looking for devices beside the loop failed")
            self._exhausted[allocator.cost_key] = self._clock.monotonic()
        finally:
            self._under_way = None
