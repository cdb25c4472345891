"""Allocation: the devices for a set of claims on a node, or why there are none.

In:  an inventory, claims, and the nodes to try.
Out: per node Allocated, Unsatisfiable, NodeError, OutOfTime or AllocationError.

No clock, I/O or randomness: the same inventory gives the same answer. Share ids and the deadline come in as functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import compress
from operator import not_
from typing import TYPE_CHECKING

from drakit.allocator.inventory.contents import Problem
from drakit.allocator.inventory.inventory import Inventory
from drakit.allocator.inventory.ledger import idle
from drakit.allocator.inventory.pools import PoolKey, PoolView, Views
from drakit.allocator.inventory.selectors import Verdict as Judgement
from drakit.allocator.results.outcomes import (
    Allocated,
    Allocation,
    AllocationError,
    NodeError,
    OutOfTime,
    Unsatisfiable,
)
from drakit.allocator.results.results import UnsupportedNodeSelectorError, build_results, site
from drakit.allocator.search.answers import Known, Refused
from drakit.allocator.search.checks import precheck
from drakit.allocator.search.layouts import Layout, layout_of
from drakit.allocator.search.plans import MAX_RESULTS, Alternative, Recent
from drakit.allocator.search.search import Answer, Expired, Search, Verdict
from drakit.allocator.search.spare import devices_left
from drakit.api import AllocationResult, ResourceClaim
from drakit.selectors import without_hint

if TYPE_CHECKING:
    from drakit.allocator.inventory.ledger import Usage
    from drakit.allocator.results.reasons import Reasons

_MAX_ANSWERS = 20_000
_MOST_ALIKE = 64
"""Pools of which two nodes may be expected to see the same use: more than that differ, and their keys are long."""


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
        expired: Expired | None = None,
        timer: Callable[[], Expired] | None = None,
        snapshot: bool = True,
    ) -> None:
        """`expired` ends all searches, `timer` gives one for each search.

        Without `snapshot`, answers hold as long as the inventory is not written to: that saves its next writer
        from copying what they share.
        """
        self._inventory = inventory.fork() if snapshot else inventory
        self._uses = self._inventory.ledger.pools.rows
        self._claims = tuple(claims)
        self._timer: Callable[[], Expired | None] = timer or (lambda: expired)
        self._plan = inventory.plans.of(
            [claim.spec.devices for claim in claims], self._inventory.classes, inventory.gates
        )
        self._plan.make_room()
        self._same: dict[int, tuple[Views, Answer]] = {}

    def answer(self, node: str) -> Answer:
        """The bare answer, without results or reasons: enough to know whether the node will do."""
        views = self._inventory.views(node)
        if len(views) == 1:
            return self._answer_one_pool(node, views, views[0])
        same = self._same.get(id(views))
        if same is None:
            same = self._same[id(views)] = (views, self._answer_pools(node, views))
        return same[1]

    def _answer_pools(self, node: str, views: Views) -> Answer:
        """Several pools. Nodes that see the same have one and the same tuple of views."""
        use = [self._uses.get(view.key) for view in views]
        recent = self._plan.recent.get(node)
        # Views and uses are immutable: the same objects mean the same answer.
        if recent is not None and recent.views is views and recent.use == use:
            return recent.answer
        return self._remember(node, views, use, None, self._work_out(views))

    def _answer_one_pool(self, node: str, views: Views, view: PoolView) -> Answer:
        """What most nodes see. Nodes alike are known by how their pool reads and what is in use of it."""
        use = self._uses.get(view.key)
        usage = idle(view) if use is None else use.usage(view)
        key = (view.content.reading(self._plan.question), usage.key)
        answer = self._plan.answers.get(key)
        if answer is None:
            answer = self._work_out(views)
            if answer.verdict is not Verdict.DEADLINE:
                self._plan.answers[key] = answer
        return self._remember(node, views, use, view.key, answer)

    def _remember(self, node: str, views: Views, use: object, pool: PoolKey | None, answer: Answer) -> Answer:
        if answer.verdict is not Verdict.DEADLINE:
            self._plan.recent[node] = Recent(views, use, pool, answer.verdict is Verdict.FOUND, answer)
        return answer

    def _work_out(self, views: Views) -> Answer:
        layout = layout_of(self._plan, views)
        usages = self._inventory.usages(views)
        if len(usages) > _MOST_ALIKE:
            return solve(layout, usages, self._timer())
        key = tuple([usage.key for usage in usages])
        found = layout.answers.get(key)
        if found is None:
            found = solve(layout, usages, self._timer())
            if found.verdict is not Verdict.DEADLINE:
                if len(layout.answers) >= _MAX_ANSWERS:
                    layout.answers.clear()
                layout.answers[key] = found
        return found

    def answers(self, nodes: Iterable[str]) -> Iterator[Answer]:
        """The bare answers, in the order of the nodes, each worked out when it is asked for.

        Most nodes see one pool of their own and have not changed since the pod before: they cost a few lookups.
        """
        seen, uses, recent = self._inventory.known_views, self._uses, self._plan.recent
        for node in nodes:
            known, views = recent.get(node), seen.get(node)
            if known and known.pool and known.views is views and known.use is uses.get(known.pool):
                yield known.answer
            elif views and len(views) == 1:
                yield self._answer_one_pool(node, views, views[0])
            else:
                yield self.answer(node)

    def refused(self, nodes: Sequence[str]) -> Iterator[Refused]:
        """The nodes on which the claims cannot be allocated, each with the answer, in order.

        What was known before the inventory changed elsewhere is not looked at again, unless this is a snapshot.
        """
        journal, known = self._inventory.journal, self._plan.known
        if journal is None:
            known = Known()
        else:
            known.catch_up(journal)
        fits, refusals = known.fits, known.refusals
        for position, node in compress(enumerate(nodes), map(not_, map(fits.__contains__, nodes))):
            found = refusals.get(node)
            if found is None:
                answer = self.answer(node)
                if answer.verdict is Verdict.FOUND:
                    fits.add(node)
                    continue
                plain = answer.verdict is Verdict.NONE and not any(view.problem for view in self._inventory.views(node))
                found = (answer, plain)
                if answer.verdict is not Verdict.DEADLINE:
                    refusals[node] = found
            yield Refused(position, *found)

    def left(self, nodes: Sequence[str]) -> list[int]:
        """How many devices that the claims could use stay free on each node, if they are allocated there.

        Of nodes on which they cannot be: none. As quick as `refused`.
        """
        journal, known = self._inventory.journal, self._plan.known
        if journal is None:
            known = Known()
        else:
            known.catch_up(journal)
        left = known.left
        for node in nodes:
            if node not in left:
                left[node] = self._left(node)
        return [left[node] for node in nodes]

    def _left(self, node: str) -> int:
        answer = self.answer(node)
        if answer.verdict is not Verdict.FOUND:
            return 0
        views = self._inventory.views(node)
        layout, usages = layout_of(self._plan, views), self._inventory.usages(views)
        key = tuple([usage.key for usage in usages])
        found = layout.left.get(key)
        if found is None:
            if len(layout.left) >= _MAX_ANSWERS:
                layout.left.clear()
            found = layout.left[key] = devices_left(layout, usages, answer)
        return found

    def suitable(self, nodes: Iterable[str]) -> Iterator[str]:
        """The nodes on which the claims can be allocated, in the order given. As quick as `answers`."""
        seen, uses, recent = self._inventory.known_views, self._uses, self._plan.recent
        for node in nodes:
            known, views = recent.get(node), seen.get(node)
            if known and known.pool and known.views is views and known.use is uses.get(known.pool):
                found = known.found
            elif views and len(views) == 1:
                found = self._answer_one_pool(node, views, views[0]).verdict is Verdict.FOUND
            else:
                found = self.answer(node).verdict is Verdict.FOUND
            if found:
                yield node

    def ranks(self, answer: Answer) -> tuple[tuple[int, str], ...]:
        """Of an answer that was found: for each prioritized list the claim and the alternative that was chosen."""
        chosen = [self._plan.alternatives[index] for index in answer.chosen]
        return tuple((each.claim, each.full_name) for each in chosen if each.sub)

    def allocate(self, node: str, *, new_uid: Callable[[], str], explain: bool = False) -> Allocation:
        """Allocate on one node. `new_uid` gives each share of a device its id."""
        answer = self.answer(node)
        if answer.verdict is Verdict.FOUND:
            return self._allocated(node, answer, new_uid)
        if answer.verdict is Verdict.DEADLINE:
            return OutOfTime(node, answer.steps)
        return self._failed(node, answer, explain=explain)

    def _allocated(self, node: str, answer: Answer, new_uid: Callable[[], str]) -> Allocated | AllocationError:
        found = Allocated(node, partial(self._results, node, answer, new_uid), answer.steps)
        if any(view.several_terms for view in self._inventory.views(node)):
            try:
                found.allocations  # noqa: B018 - built now: it may turn out that no result can tell where it holds
            except UnsupportedNodeSelectorError as error:
                message = f"create NodeSelector: {error}"
                return AllocationError(node, message, answer.steps, message)
        return found

    def _results(self, node: str, answer: Answer, new_uid: Callable[[], str]) -> tuple[AllocationResult, ...]:
        views = self._inventory.views(node)
        layout = layout_of(self._plan, views)
        return build_results(layout, answer, views, self._claims, self._inventory.classes, node, new_uid)

    def _failed(self, node: str, answer: Answer, *, explain: bool) -> Allocation:
        views = self._inventory.views(node)
        layout = layout_of(self._plan, views)
        if answer.verdict not in (Verdict.NONE, Verdict.POOL):
            message, words = self._message(layout, answer, views)
            return AllocationError(node, message, answer.steps, words)
        reasons = self._reasons(node, layout, views) if explain else None
        if answer.verdict is Verdict.POOL:
            message, words = self._message(layout, answer, views)
            return NodeError(node, message, answer.steps, reasons, words)
        invalid = [view for view in views if view.problem is Problem.INVALID]
        if invalid:
            named = ", ".join("/".join(view.key) for view in invalid)
            words = f"invalid resource pools were encountered: {named}"
            return NodeError(node, _invalid_pools(invalid), answer.steps, reasons, words)
        return Unsatisfiable(node, answer.steps, reasons)

    def _reasons(self, node: str, layout: Layout, views: Views) -> Reasons:
        from drakit.allocator.results.reasons import explain

        return explain(self._inventory, self._claims, node, layout, views)

    def _message(self, layout: Layout, answer: Answer, views: Views) -> tuple[str, str]:
        """What to tell, and how kube-scheduler tells it."""
        if answer.alternative < 0:
            claim = self._name(answer.claim)
            told = f"claim {claim}, {answer.message}"
            if answer.verdict is Verdict.LIMIT:
                limit = f"exceeds the claim limit of {MAX_RESULTS}"
                told = f"claim {claim}: number of requested devices {answer.subject} {limit}"
            return told, told
        wanted = self._plan.alternatives[answer.alternative]
        claim, request = self._name(wanted.claim), wanted.sub or wanted.name
        if answer.verdict is Verdict.POOL:
            view = views[answer.subject]
            state = "being updated" if view.problem is Problem.INCOMPLETE else "invalid"
            pool = f"resource pool {'/'.join(view.key)} is currently {state}"
            told = f"claim {claim}, request {request}: asks for all devices, but {pool}"
            return f"{told}: {view.reason}", told
        found = site(layout, views, answer.subject)
        device = "/".join((*found.view.key, found.device.name))
        if answer.verdict is Verdict.CONSTRAINT:
            why = "because a claim constraint would not be satisfied"
            told = f"claim {claim}, request {request}: cannot add device {device} {why}"
            return told, told
        shape = found.view.content.shapes[answer.subject - layout.offsets[layout.pool_of[answer.subject]]]
        return self._selector_message(wanted, wanted.selection.verdict(shape), device)

    def _selector_message(self, wanted: Alternative, verdict: Judgement, device: str) -> tuple[str, str]:
        origin, number = wanted.selection.origin(verdict.refused_by)
        claim = f"claim {self._name(wanted.claim)}"
        where, owner = f"{claim}, request {wanted.sub or wanted.name}", claim
        if origin == "class":
            where = owner = f"class {wanted.class_name}"
        told, words = f"selector #{number}", without_hint(verdict.error)
        return f"{where}: {told} on device {device}: {verdict.error}", f"{owner}: {told}: {words}"

    def _name(self, claim: int) -> str:
        meta = self._claims[claim].metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


def _invalid_pools(invalid: Sequence[PoolView]) -> str:
    named = ", ".join(f"{'/'.join(view.key)} ({view.reason})" for view in invalid)
    return f"invalid resource pools were encountered: {named}"


def solve(layout: Layout, usages: Sequence[Usage], expired: Expired | None = None) -> Answer:
    """Check, then search. The answer depends on nothing but its arguments."""
    if not layout.checked:
        layout.refusal, layout.checked = precheck(layout), True
    return layout.refusal or Search(layout, usages, expired).run()


def allocate(
    inventory: Inventory,
    node: str,
    claims: Sequence[ResourceClaim],
    *,
    new_uid: Callable[[], str],
    expired: Expired | None = None,
    explain: bool = False,
) -> Allocation:
    """Allocate all claims on one node, or say why not. See `Allocator` for many nodes."""
    return Allocator(inventory, claims, expired=expired).allocate(node, new_uid=new_uid, explain=explain)
