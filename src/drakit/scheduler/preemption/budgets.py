"""Which pods cannot go without breaking a disruption budget. Pure.

In:  pods that might go, the most important first, and the budgets.
Out: the uids of those for whom a budget has nothing left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from drakit.api.objects.pods import Pod
from drakit.api.objects.policy import PodDisruptionBudget
from drakit.base.labels import from_struct


def beyond_budget(pods: Sequence[Pod], budgets: Iterable[PodDisruptionBudget]) -> set[str]:
    """A pod whose eviction was granted already takes nothing more."""
    left = [
        (each, from_struct(each.spec.selector), [each.status.disruptions_allowed])
        for each in budgets
        # As in kube-scheduler, a selector that takes every pod protects none from preemption.
        if each.spec.selector is not None and (each.spec.selector.match_labels or each.spec.selector.match_expressions)
    ]
    found: set[str] = set()
    for pod in pods:
        for budget, selector, allowed in left if pod.metadata.labels else ():
            if budget.metadata.namespace != pod.metadata.namespace or not selector.matches(pod.metadata.labels):
                continue
            if pod.metadata.name in budget.status.disrupted_pods:
                continue
            allowed[0] -= 1
            if allowed[0] < 0:
                found.add(pod.metadata.uid)
    return found
