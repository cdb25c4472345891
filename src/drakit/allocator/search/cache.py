"""Answers for nodes, cached for all nodes and claims that look alike.

In:  the state of a node, as the inventory keeps it.
Out: the answer for the claims of a plan, searched for only when no node that looks alike was looked at before.

An answer is first looked up in the NodeDevices of the node, which is replaced when anything about the node's devices
changes. After that it is looked up by *look*: what the plan's query finds in the pools of the node, and the keys of
their usages. A pod changes one node of hundreds. Each of the others costs the next pod two look-ups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from weakref import WeakValueDictionary

from drakit.allocator.inventory.deadlines import TimeOver, until
from drakit.allocator.inventory.inventory import Inventory
from drakit.allocator.inventory.nodes import NodeDevices
from drakit.allocator.inventory.pools import Views
from drakit.allocator.search.answer import HasExpired, SearchAnswer, SearchResult
from drakit.allocator.search.layouts import Layout, Layouts
from drakit.allocator.search.plans import Plan
from drakit.allocator.search.reader import meaning, read_plan, signature
from drakit.allocator.search.solver import Solver
from drakit.allocator.search.spare import devices_left
from drakit.api import DeviceClaim, DeviceClass
from drakit.base.gates import FeatureGates

_MAX_PLANS = 128
_MAX_KNOWN = 50_000
_MAX_IN_STATE = _MAX_PLANS
_MOST_ALIKE = 64
"""Up to this many pools, nodes often look alike. With more they rarely do, and the keys are long."""

Timer = Callable[[], HasExpired | None]
"""Starts the time limit of one node: for its selectors and the search."""


class KnownAnswer:
    """An answer with what follows from it. `plain`: there is no more to say than that there is no solution."""

    __slots__ = ("answer", "left", "plain", "suitable")

    def __init__(self, answer: SearchAnswer, views: Views) -> None:
        self.answer = answer
        self.suitable = answer.result is SearchResult.FOUND
        self.plain = answer.result is SearchResult.NONE and not any(view.problem for view in views)
        self.left: int | None = None if self.suitable else 0
        """How many devices that the claims could use stay free; None before anybody asked."""


OUT_OF_TIME = KnownAnswer(SearchAnswer(SearchResult.DEADLINE), ())


class PlanAnswers:
    """The answers for one plan. They never change: what may change is the state of a node."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._layouts = Layouts(plan)
        self._solvers: dict[Layout, Solver] = {}
        self._by_look: dict[object, KnownAnswer] = {}

    def make_room(self) -> None:
        """Forget everything when too much is cached: entries of devices that are gone would stay forever."""
        if max(len(self._layouts), len(self._solvers), len(self._by_look)) >= _MAX_KNOWN:
            self._layouts.clear()
            self._solvers.clear()
            self._by_look.clear()

    def layout(self, views: Views) -> Layout:
        return self._layouts.of(views)

    def solver(self, views: Views) -> Solver:
        layout = self._layouts.of(views)
        found = self._solvers.get(layout)
        if found is None:
            found = self._solvers[layout] = Solver(layout)
        return found

    def find(self, state: NodeDevices, timer: Timer) -> KnownAnswer:
        """The answer for nodes in that state."""
        # The fast path. The state is replaced when anything about the node's devices changes, so there is nothing to
        # invalidate and no key to compute.
        found: KnownAnswer | None = state.answers.get(self)
        if found is None:
            # Where many plans are in use, each looks again at all nodes that changed since its turn: for a node that
            # looks like another one did no time has to be kept.
            found = self._looks_known(state) or self._in_time(state, timer())
            # A search that ran out of time says nothing about the node.
            if found.answer.result is not SearchResult.DEADLINE:
                if len(state.answers) >= _MAX_IN_STATE:
                    state.answers.clear()
                state.answers[self] = found
        return found

    def left(self, state: NodeDevices, known: KnownAnswer) -> int:
        """How many devices that the claims could use stay free on a node, if they are allocated there."""
        if known.left is None:
            known.left = devices_left(self.solver(state.views).layout, state.usages, known.answer)
        return known.left

    def _looks_known(self, state: NodeDevices) -> KnownAnswer | None:
        """The answer for a node with one pool, when nothing has to be evaluated or searched for it."""
        if len(state.views) != 1:
            return None
        result = state.views[0].content.known_result(self.plan.query)
        return None if result is None else self._by_look.get((result, state.usages[0].key))

    def _in_time(self, state: NodeDevices, expired: HasExpired | None) -> KnownAnswer:
        if expired is None:
            return self._by_look_of(state, None)
        try:
            with until(expired):
                return self._by_look_of(state, expired)
        except TimeOver:
            return OUT_OF_TIME

    def _by_look_of(self, state: NodeDevices, expired: HasExpired | None) -> KnownAnswer:
        views, usages = state.views, state.usages
        # With many pools two nodes rarely look the same: the key would cost more than it saves.
        if len(views) > _MOST_ALIKE:
            return KnownAnswer(self.solver(views).solve(usages, expired), views)
        key: object
        if len(views) == 1:  # what most nodes see; this way no layout has to be looked up
            key = (views[0].content.result(self.plan.query), usages[0].key)
        else:
            key = (self._layouts.of(views), tuple([usage.key for usage in usages]))
        found = self._by_look.get(key)
        if found is None:
            found = self._search(state, expired)
            if found.answer.result is not SearchResult.DEADLINE:
                self._by_look[key] = found
        return found

    def _search(self, state: NodeDevices, expired: HasExpired | None) -> KnownAnswer:
        """Pools that look different may come to the same layout: one search serves them all."""
        solver = self.solver(state.views)
        key = (solver.layout, tuple([usage.key for usage in state.usages]))
        found = self._by_look.get(key)
        if found is None:
            found = KnownAnswer(solver.solve(state.usages, expired), state.views)
            if found.answer.result is not SearchResult.DEADLINE:
                self._by_look[key] = found
        return found


class PlanCache:
    """The most recently used plans, by what the claims ask for. All claims from one template share a plan."""

    def __init__(self) -> None:
        self._known: dict[object, PlanAnswers] = {}
        # By what claims mean, whatever their classes are called: where many classes take turns that select alike, one
        # plan looks at the nodes that changed. Looked at only when a signature is new.
        self._by_meaning: WeakValueDictionary[object, PlanAnswers] = WeakValueDictionary()

    @staticmethod
    def of(inventory: Inventory) -> PlanCache:
        """The one that an inventory shares with its forks."""
        found: PlanCache | None = inventory.remembered.get(PlanCache)
        if found is None:
            found = inventory.remembered[PlanCache] = PlanCache()
        return found

    def answers(
        self, claims: Sequence[DeviceClaim], classes: Mapping[str, DeviceClass], gates: FeatureGates
    ) -> PlanAnswers:
        key = (gates, tuple([signature(claim, classes) for claim in claims]))
        # Taken out and put back in: the dict is in the order of use, and the oldest goes first.
        found = self._known.pop(key, None) or self._meant_by(claims, classes, gates)
        self._known[key] = found
        if len(self._known) > _MAX_PLANS:
            del self._known[next(iter(self._known))]
        found.make_room()
        return found

    def _meant_by(
        self, claims: Sequence[DeviceClaim], classes: Mapping[str, DeviceClass], gates: FeatureGates
    ) -> PlanAnswers:
        key = (gates, tuple([meaning(claim, classes) for claim in claims]))
        found = self._by_meaning.get(key)
        if found is None:
            found = self._by_meaning[key] = PlanAnswers(read_plan(claims, classes, gates))
        return found
