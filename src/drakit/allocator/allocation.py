"""Allocation: the devices for a set of claims on a node, or why there are none.

In:  an inventory, claims, and the nodes to try.
Out: per node Allocated, Unsatisfiable, NodeError, OutOfTime or AllocationError.

No clock, I/O or randomness: the same inventory gives the same answer. Share ids and the deadline come in as functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from drakit.allocator.inventory.contents import PoolProblem
from drakit.allocator.inventory.deadlines import TimeOver, until
from drakit.allocator.inventory.inventory import Inventory
from drakit.allocator.inventory.nodes import NodeDevices
from drakit.allocator.results.builder import UnsupportedNodeSelectorError, build_results
from drakit.allocator.results.explanation import explain as explain_failure
from drakit.allocator.results.messages import failure_message, invalid_pools_message
from drakit.allocator.results.outcomes import (
    Allocated,
    Allocation,
    AllocationError,
    NodeError,
    OutOfTime,
    Unsatisfiable,
)
from drakit.allocator.results.reasons import Reasons
from drakit.allocator.search.answer import HasExpired, SearchAnswer, SearchResult
from drakit.allocator.search.cache import OUT_OF_TIME, KnownAnswer, PlanCache, Timer
from drakit.api import ResourceClaim

NewUid = Callable[[], str]
_MAX_CHECKS = 32
"""How often a search for a remedy looks whether its time is over before it is."""


class UnsuitableNode(NamedTuple):
    """A node that will not do. `plain`: there is no more to say than that the claims cannot be allocated there."""

    position: int
    answer: SearchAnswer
    plain: bool


class Allocator:
    """The claims of one pod on one state of the cluster, for any number of nodes.

    What is found out about one node is used for all that look alike: nodes with the same devices and the same use
    of them, as far as these claims can tell, cost one lookup each. Results are built when asked for.
    """

    def __init__(
        self,
        inventory: Inventory,
        claims: Sequence[ResourceClaim],
        *,
        expired: HasExpired | None = None,
        timer: Callable[[], HasExpired] | None = None,
        snapshot: bool = True,
    ) -> None:
        """`expired` ends all searches, `timer` gives one for each search.

        Without `snapshot`, answers hold as long as the inventory is not written to: that saves its next writer
        from copying what they share.
        """
        # Answers are computed lazily: without a fork a later write to the inventory would change them.
        self._inventory = inventory.fork() if snapshot else inventory
        self._claims = tuple(claims)
        self._timer: Timer = timer or (lambda: expired)
        asked = [claim.spec.devices for claim in claims]
        self._cache = PlanCache.of(inventory).answers(asked, inventory.classes, inventory.gates)
        self._plan = self._cache.plan

    @property
    def cost_key(self) -> object:
        """The same object for all claims that ask for the same. Callers keep under it what such claims cost."""
        return self._cache

    @property
    def inventory(self) -> Inventory:
        """What the answers are about."""
        return self._inventory

    def answer(self, node: str) -> SearchAnswer:
        """The bare answer, without results or reasons: enough to know whether the node will do."""
        return self._find(node).answer

    def answers(self, nodes: Iterable[str]) -> Iterator[SearchAnswer]:
        """The bare answers, in the order of the nodes, each worked out when it is asked for."""
        for _, known in self._known(nodes):
            yield known.answer

    def refused(self, nodes: Iterable[str]) -> Iterator[UnsuitableNode]:
        """The nodes on which the claims cannot be allocated, each with the answer, in order."""
        states, cache, position = self._inventory.states, self._cache, -1
        for node in nodes:
            position += 1
            # The fast path of `_known`, written out: this loop runs over all nodes for every pod.
            try:
                known: KnownAnswer = states[node].answers[cache]
            except KeyError:
                known = self._find(node)
            if not known.suitable:
                yield UnsuitableNode(position, known.answer, known.plain)

    def suitable(self, nodes: Iterable[str]) -> Iterator[str]:
        """The nodes on which the claims can be allocated, in the order given."""
        for node, known in self._known(nodes):
            if known.suitable:
                yield node

    def left(self, nodes: Iterable[str]) -> list[int]:
        """How many devices that the claims could use stay free on each node, if they are allocated there.

        Of nodes on which they cannot be: none.
        """
        state_of, left = self._inventory.state, self._cache.left
        return [
            known.left if known.left is not None else left(state_of(node), known) for node, known in self._known(nodes)
        ]

    def _known(self, nodes: Iterable[str]) -> Iterator[tuple[str, KnownAnswer]]:
        """Nodes that have not changed since somebody asked the same cost two look-ups each."""
        states, cache = self._inventory.states, self._cache
        for node in nodes:
            try:
                yield node, states[node].answers[cache]
            except KeyError:
                yield node, self._find(node)

    def _find(self, node: str) -> KnownAnswer:
        state = self._inventory.states.get(node)
        if state is None:
            # The first node that sees thousands of pools takes long before any selector is evaluated.
            try:
                state = self._state(node, self._timer())
            except TimeOver:
                return OUT_OF_TIME
        return self._cache.find(state, self._timer)

    def _state(self, node: str, expired: HasExpired | None) -> NodeDevices:
        if expired is None:
            return self._inventory.state(node)
        with until(expired):
            return self._inventory.state(node)

    def ranks(self, answer: SearchAnswer) -> tuple[tuple[int, str], ...]:
        """Of an answer that was found: for each prioritized list the claim and the alternative that was chosen."""
        chosen = [self._plan.alternatives[index] for index in answer.chosen]
        return tuple((each.claim, each.full_name) for each in chosen if each.sub)

    def allocate(self, node: str, *, new_uid: NewUid | None = None, explain: bool = False) -> Allocation:
        """Allocate on one node.

        `new_uid` gives each share of a device its id. Without it the ids are derived from claim and device.
        """
        answer = self.answer(node)
        if answer.result is SearchResult.FOUND:
            return self._allocated(node, answer, new_uid)
        if answer.result is SearchResult.DEADLINE:
            return OutOfTime(node, answer.steps)
        return self._failed(node, answer, explain=explain)

    def reasons(self, node: str, *, searched: bool = True) -> Reasons:
        """What becomes of every device that the node sees, request by request, whether the claims fit or not.

        Not `searched`, constraints between devices are left out: for an answer within a moment.
        """
        solver = self._cache.solver(self._inventory.views(node))
        return explain_failure(self._inventory, self._claims, node, solver, fits=None, searched=searched)

    def reasons_until(self, expired: HasExpired, node: str) -> Reasons | None:
        """The same within a moment: not searched, and None when the time is over before all selectors have answered."""
        try:
            with until(expired):
                return self.reasons(node, searched=False)
        except TimeOver:
            return None

    def _allocated(self, node: str, answer: SearchAnswer, new_uid: NewUid | None) -> Allocated | AllocationError:
        views = self._inventory.views(node)
        layout = self._cache.layout(views)
        build = partial(
            build_results, layout, answer, views, self._claims, self._inventory.classes, node=node, new_uid=new_uid
        )
        found = Allocated(node, build, answer.steps)
        if any(views[layout.pool_of[pick.device]].several_terms for pick in answer.picks):
            try:
                found.allocations  # noqa: B018 - built now: it may turn out that no result can tell where it holds
            except UnsupportedNodeSelectorError as error:
                message = f"create NodeSelector: {error}"
                return AllocationError(node, message, answer.steps, message)
        return found

    def _failed(self, node: str, answer: SearchAnswer, *, explain: bool) -> Allocation:
        views = self._inventory.views(node)
        solver = self._cache.solver(views)
        if answer.result not in (SearchResult.NONE, SearchResult.POOL):
            message, words = failure_message(solver.layout, answer, views, self._claims)
            return AllocationError(node, message, answer.steps, words)
        reasons = explain_failure(self._inventory, self._claims, node, solver, fits=_fits) if explain else None
        if answer.result is SearchResult.POOL:
            message, words = failure_message(solver.layout, answer, views, self._claims)
            return NodeError(node, message, answer.steps, reasons, words)
        # As upstream: an invalid pool is reported only when the claims could not be allocated without it.
        invalid = [view for view in views if view.problem is PoolProblem.INVALID]
        if invalid:
            message, words = invalid_pools_message(invalid)
            return NodeError(node, message, answer.steps, reasons, words)
        return Unsatisfiable(node, answer.steps, reasons)


def _fits(inventory: Inventory, claims: Sequence[ResourceClaim], node: str) -> bool:
    """Whether claims can be allocated, as far as a short search finds out."""
    checks = iter(range(_MAX_CHECKS))
    allocator = Allocator(inventory, claims, expired=lambda: next(checks, None) is None)
    return isinstance(allocator.allocate(node), Allocated)


def allocate(
    inventory: Inventory,
    node: str,
    claims: Sequence[ResourceClaim],
    *,
    new_uid: NewUid | None = None,
    expired: HasExpired | None = None,
    explain: bool = False,
) -> Allocation:
    """Allocate all claims on one node, or say why not. See `Allocator` for many nodes."""
    return Allocator(inventory, claims, expired=expired).allocate(node, new_uid=new_uid, explain=explain)
