"""Outcomes: the possible results of an allocation on one node, by what the caller does next.

Allocated        store the allocations, or try them elsewhere
Unsatisfiable    try another node, or wait for something to change
NodeError        the same, but this node is in a state that should not last
OutOfTime        try again with more time
AllocationError  stop: no node can help
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from drakit.allocator.results.reasons import Reasons
from drakit.api import AllocationResult


class Allocated:
    """Every claim can have its devices on this node.

    The results are put together when they are first read: of the many nodes that fit a pod, one is chosen.
    """

    __slots__ = ("_build", "_made", "node", "steps")

    def __init__(self, node: str, build: Callable[[], tuple[AllocationResult, ...]], steps: int = 0) -> None:
        self.node = node
        self.steps = steps
        self._build = build
        self._made: tuple[AllocationResult, ...] | None = None

    @property
    def allocations(self) -> tuple[AllocationResult, ...]:
        """One AllocationResult per claim, in order."""
        if self._made is None:
            self._made = self._build()
        return self._made

    def __repr__(self) -> str:
        return f"Allocated(node={self.node!r}, allocations={self.allocations!r}, steps={self.steps})"


@dataclass(frozen=True, slots=True)
class Unsatisfiable:
    """There is no solution on this node now."""

    node: str
    steps: int = 0
    reasons: Reasons | None = None


@dataclass(frozen=True, slots=True)
class NodeError:
    """This node cannot be used now, other nodes may. `words` is the message as kube-scheduler puts it."""

    node: str
    message: str
    steps: int = 0
    reasons: Reasons | None = None
    words: str = ""


@dataclass(frozen=True, slots=True)
class AllocationError:
    """The whole attempt ends: the claims, a class or a selector are wrong, whatever the node.

    `words` is the message as kube-scheduler puts it, which names no device.
    """

    node: str
    message: str
    steps: int = 0
    words: str = ""


@dataclass(frozen=True, slots=True)
class OutOfTime:
    """The deadline passed before the search ended."""

    node: str
    steps: int = 0


Allocation = Allocated | Unsatisfiable | NodeError | AllocationError | OutOfTime
