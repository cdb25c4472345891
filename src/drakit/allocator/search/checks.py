"""Checks that come before any search, in the order in which Kubernetes makes them.

In:  a layout.
Out: the answer when a check fails: the claims cannot be allocated anywhere, or not on this node now; otherwise None.
"""

from __future__ import annotations

from drakit.allocator.search.answer import SearchAnswer, SearchResult
from drakit.allocator.search.layouts import Layout, bits_of
from drakit.allocator.search.plans import MAX_RESULTS, AllCheck, InvalidClaim, LimitCheck


def precheck(layout: Layout) -> SearchAnswer | None:
    """The first check that fails decides."""
    for check in layout.plan.checks:
        match check:
            case InvalidClaim():
                return SearchAnswer(SearchResult.REFUSED, claim=check.claim, message=check.message)
            case AllCheck():
                failed = _check_all(layout, check)
            case LimitCheck():
                failed = _check_limit(layout, check)
        if failed:
            return failed
    return None


def _check_all(layout: Layout, check: AllCheck) -> SearchAnswer | None:
    """`All` has a meaning only when every pool is whole and every selector can be evaluated."""
    index = check.alternative.index
    for number, (pool, offset) in enumerate(zip(layout.pools, layout.offsets, strict=True)):
        if pool.kind.problem:
            return SearchAnswer(SearchResult.POOL, alternative=index, subject=number)
        failing = layout.failing[index] >> offset & (1 << len(pool.kind.devices)) - 1
        if failing:
            return SearchAnswer(SearchResult.SELECTOR, alternative=index, subject=offset + next(bits_of(failing)))
    return None


def _check_limit(layout: Layout, check: LimitCheck) -> SearchAnswer | None:
    least = sum(
        min(layout.selected[each.index].bit_count() if each.takes_all else each.count for each in request.alternatives)
        for request in layout.plan.requests
        if request.claim == check.claim
    )
    return SearchAnswer(SearchResult.LIMIT, claim=check.claim, subject=least) if least > MAX_RESULTS else None
