"""The fewest pods of a node that have to go for a pod to fit. Pure.

In:  the pods of a node, a check whether the pod fits without some of them, and disruption budgets.
Out: the victims, or why there are none.

First all pods of lower priority are supposed to be gone. If the pod fits then, they are spared one by one, the most
important first, as long as it still fits. So nobody is evicted whom the pod could do without, and of two that would do
equally the more important one stays. Pods that are on their way out go anyway, and are nobody's victims.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from drakit.api.objects.pods import Pod
from drakit.api.objects.policy import PodDisruptionBudget
from drakit.scheduler.cache.nominations import priority_of
from drakit.scheduler.framework import PluginStatus
from drakit.scheduler.preemption.budgets import beyond_budget

NO_VICTIMS = PluginStatus.unresolvable("No preemption victims found for incoming pod")

FitCheck = Callable[[Sequence[Pod]], PluginStatus | None]
"""None: the pod fits. Monotonic: when it fits without some pods, it fits without more of them."""


class Candidate(msgspec.Struct, frozen=True):
    """Of one node: who has to be evicted, the most important first, and who is leaving anyway.

    `violations`: how many of the victims a disruption budget does not give.
    """

    node: str
    victims: tuple[Pod, ...]
    leaving: tuple[Pod, ...] = ()
    violations: int = 0

    @property
    def gone(self) -> tuple[Pod, ...]:
        return self.victims + self.leaving


def select_victims(
    node: str,
    pods: Iterable[Pod],
    priority: int,
    check: FitCheck,
    now: str,
    budgets: Iterable[PodDisruptionBudget] = (),
) -> Candidate | PluginStatus:
    """`now` stands in for the start time of pods that have none."""
    lower = [pod for pod in pods if priority_of(pod) < priority]
    leaving = [pod for pod in lower if pod.metadata.deletion_timestamp]
    candidates = sorted((pod for pod in lower if pod not in leaving), key=lambda pod: importance(pod, now))
    refusal = check([*leaving, *candidates])
    if refusal is not None:
        return refusal if lower else NO_VICTIMS
    beyond = beyond_budget(candidates, budgets)
    # Those whom a budget does not give are spared first.
    in_turn = sorted(candidates, key=lambda pod: pod.metadata.uid not in beyond)
    victims: list[Pod] = []
    for position, pod in enumerate(in_turn):
        undecided = in_turn[position + 1 :]
        # The pod does not fit while this one stays, so it has to go.
        if check([*leaving, *victims, *undecided]) is not None:
            victims.append(pod)
    violations = sum(pod.metadata.uid in beyond for pod in victims)
    ordered = sorted(victims, key=lambda pod: importance(pod, now))
    return Candidate(node, tuple(ordered), tuple(leaving), violations)


def importance(pod: Pod, now: str) -> tuple[int, str]:
    """Smaller is more important: a higher priority; of the same, whoever has run longer."""
    return -priority_of(pod), pod.status.start_time or now
