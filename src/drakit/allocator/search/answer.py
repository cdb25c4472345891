"""The answer of a search in terms of positions: which devices, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from drakit.allocator.inventory.deadlines import HasExpired
from drakit.allocator.inventory.usage import Amounts

__all__ = ["HasExpired", "Pick", "SearchAnswer", "SearchResult"]


class SearchResult(Enum):
    FOUND = "found"
    NONE = "none"
    SELECTOR = "selector"  # a selector failed on a device that the search reached
    CONSTRAINT = "constraint"  # All includes a device that a constraint forbids
    POOL = "pool"  # All was asked for and a pool is incomplete or invalid
    LIMIT = "limit"  # the claim wants more devices than a result can hold
    REFUSED = "refused"  # the claims cannot be allocated anywhere
    DEADLINE = "deadline"


class Pick(NamedTuple):
    """A device for an alternative; `consumed` is None for a whole device."""

    alternative: int
    device: int
    consumed: Amounts | None


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """`chosen` is the alternative of each request.

    `alternative`, `subject` (a device, pool or number) and `claim` say what a failure is about.
    """

    result: SearchResult
    steps: int = 0
    picks: tuple[Pick, ...] = ()
    chosen: tuple[int, ...] = ()
    alternative: int = -1
    subject: int = -1
    claim: int = -1
    message: str = ""

    @property
    def is_out_of_time(self) -> bool:
        return self.result is SearchResult.DEADLINE
