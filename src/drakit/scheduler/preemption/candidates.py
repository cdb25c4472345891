"""The node where preemption does least harm. Pure.

In:  nodes with their victims.
Out: one of them, by the criteria of kube-scheduler, each deciding among those that are equal so far: the fewest
     victims whom a disruption budget does not give, the lowest highest priority of a victim, the smallest sum of
     priorities, the fewest victims, the latest start of the highest victims. Where nobody has to be evicted, because
     all who have to go are going, comes before all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from drakit.api.text.times import parse_time
from drakit.scheduler.cache.nominations import priority_of
from drakit.scheduler.preemption.victims import Candidate

_LEAST_PERCENTAGE = 10
_LEAST_CANDIDATES = 100
_OFFSET = 2**31
"""Added to priorities before they are summed up: of victims with negative ones, more must not be better."""


def enough_candidates(nodes: int) -> int:
    """How many candidates to find among so many nodes before one is chosen."""
    return min(max(nodes * _LEAST_PERCENTAGE // 100, _LEAST_CANDIDATES), nodes)


def pick(candidates: Sequence[Candidate], now: str, *, preferred: str = "") -> Candidate:
    """Of those that are equal in all, the `preferred` node, else the first."""
    return min(candidates, key=lambda each: (*_harm(each, now), each.node != preferred))


def _harm(selection: Candidate, now: str) -> tuple[float, int, int, int, float]:
    if not selection.victims:
        return float("-inf"), 0, 0, 0, 0.0
    priorities = [priority_of(pod) for pod in selection.victims]
    highest = max(priorities)
    started = [pod.status.start_time or now for pod in selection.victims if priority_of(pod) == highest]
    earliest: datetime = min(map(parse_time, started))
    return (
        selection.violations,
        highest,
        sum(each + _OFFSET for each in priorities),
        len(priorities),
        -earliest.timestamp(),
    )
