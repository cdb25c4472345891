"""The messages for an allocation that failed: our own and kube-scheduler's.

In:  an answer that is not a solution, with layout, views and claims that its positions stand for.
Out: two texts: ours, which names the device and the reason, and that of kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Sequence

from drakit.allocator.inventory.contents import PoolProblem
from drakit.allocator.inventory.pools import PoolView, Views
from drakit.allocator.inventory.shapes import ShapeMatch
from drakit.allocator.results.builder import site
from drakit.allocator.results.explanation import name_of
from drakit.allocator.search.answer import SearchAnswer, SearchResult
from drakit.allocator.search.layouts import Layout
from drakit.allocator.search.plans import MAX_RESULTS, Alternative
from drakit.api import ResourceClaim
from drakit.selectors import without_hint


def failure_message(
    layout: Layout, answer: SearchAnswer, views: Views, claims: Sequence[ResourceClaim]
) -> tuple[str, str]:
    """Our message, and the one that kube-scheduler gives."""
    if answer.alternative < 0:
        claim = name_of(claims[answer.claim])
        told = f"claim {claim}, {answer.message}"
        if answer.result is SearchResult.LIMIT:
            limit = f"exceeds the claim limit of {MAX_RESULTS}"
            told = f"claim {claim}: number of requested devices {answer.subject} {limit}"
        return told, told
    wanted = layout.plan.alternatives[answer.alternative]
    asking = claims[wanted.claim]
    claim, request = name_of(asking), wanted.sub or wanted.name
    if answer.result is SearchResult.POOL:
        view = views[answer.subject]
        state = "being updated" if view.problem is PoolProblem.INCOMPLETE else "invalid"
        pool = f"resource pool {'/'.join(view.key)} is currently {state}"
        told = f"claim {claim}, request {request}: asks for all devices, but {pool}"
        return f"{told}: {view.reason}", told
    found = site(layout, views, answer.subject)
    device = "/".join((*found.view.key, found.device.name))
    if answer.result is SearchResult.CONSTRAINT:
        why = "because a claim constraint would not be satisfied"
        told = f"claim {claim}, request {request}: cannot add device {device} {why}"
        return told, told
    shape = found.view.content.shapes[answer.subject - layout.offsets[layout.pool_of[answer.subject]]]
    return _selector_message(wanted, asking, wanted.selectors.check(shape), device)


def _selector_message(wanted: Alternative, claim: ResourceClaim, result: ShapeMatch, device: str) -> tuple[str, str]:
    origin, number = wanted.selectors.origin(result.refused_by)
    owner = f"claim {name_of(claim)}"
    where = f"{owner}, request {wanted.sub or wanted.name}"
    if origin == "class":
        where = owner = f"class {wanted.class_of(claim)}"
    told, words = f"selector #{number}", without_hint(result.error)
    return f"{where}: {told} on device {device}: {result.error}", f"{owner}: {told}: {words}"


def invalid_pools_message(invalid: Sequence[PoolView]) -> tuple[str, str]:
    """The two messages for invalid pools."""
    head = "invalid resource pools were encountered"
    named = ", ".join(f"{'/'.join(view.key)} ({view.reason})" for view in invalid)
    return f"{head}: {named}", f"{head}: {', '.join('/'.join(view.key) for view in invalid)}"
