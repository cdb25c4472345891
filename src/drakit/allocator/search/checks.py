"""Checks that come before any search, in the order in which Kubernetes makes them.

In:  a layout.
Out: the answer when a check fails: the attempt is refused, or the node cannot be judged; otherwise nothing.
"""

from __future__ import annotations

from drakit.allocator.search.layouts import Layout, bits_of
from drakit.allocator.search.plans import MAX_RESULTS, AllCheck, LimitCheck, Refusal
from drakit.allocator.search.search import Answer, Verdict


def precheck(layout: Layout) -> Answer | None:
    """The first check that fails decides."""
    for check in layout.plan.checks:
        match check:
            case Refusal():
                return Answer(Verdict.REFUSED, claim=check.claim, message=check.message)
            case AllCheck():
                failed = _check_all(layout, check)
            case LimitCheck():
                failed = _check_limit(layout, check)
        if failed:
            return failed
    return None


def _check_all(layout: Layout, check: AllCheck) -> Answer | None:
    """`All` has a meaning only when every pool is whole and every selector can be evaluated."""
    index = check.alternative.index
    for number, (profile, offset) in enumerate(zip(layout.profiles, layout.offsets, strict=True)):
        if profile.problem:
            return Answer(Verdict.POOL, alternative=index, subject=number)
        failing = layout.failing[index] >> offset & (1 << len(profile.traits)) - 1
        if failing:
            return Answer(Verdict.SELECTOR, alternative=index, subject=offset + next(bits_of(failing)))
    return None


def _check_limit(layout: Layout, check: LimitCheck) -> Answer | None:
    least = sum(
        min(layout.selected[each.index].bit_count() if each.takes_all else each.count for each in request.alternatives)
        for request in layout.plan.requests
        if request.claim == check.claim
    )
    return Answer(Verdict.LIMIT, claim=check.claim, subject=least) if least > MAX_RESULTS else None
