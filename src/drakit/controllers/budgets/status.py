"""What a budget allows, by the pods that it is about. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from drakit.api import Pod
from drakit.api.objects.partial import Partial
from drakit.api.objects.plain import Plain
from drakit.api.objects.policy import PodDisruptionBudget
from drakit.api.text.times import format_time, parse_time
from drakit.controllers.intorpercent import scaled

CONFIRMED_WITHIN = timedelta(minutes=2)
"""How long an eviction that was granted may take to show; after that the pod counts again."""
OnePod = Partial[Pod]


def is_healthy(pod: OnePod) -> bool:
    return any(each.type == "Ready" and each.status == "True" for each in pod.view.status.conditions)


def unconfirmed(budget: PodDisruptionBudget, pods: Sequence[OnePod], now: datetime) -> dict[str, str]:
    """Pods whose eviction was granted and that are still there, for a while."""
    there = {pod.view.metadata.name: pod for pod in pods if pod.view.metadata.deletion_timestamp is None}
    return {
        name: since for name, since in budget.status.disrupted_pods.items()
        if name in there and since and now < parse_time(since) + CONFIRMED_WITHIN
    }  # fmt: skip


def desired_healthy(budget: PodDisruptionBudget, pods: int, expected: int) -> tuple[int, int]:
    """How many pods must stay healthy, and of how many. A number is of the pods there are, a share of those wanted."""
    spec = budget.spec
    if spec.max_unavailable is not None:
        return max(expected - scaled(spec.max_unavailable, expected, round_up=True), 0), expected
    if isinstance(spec.min_available, int):
        return spec.min_available, pods
    if spec.min_available is not None:
        return scaled(spec.min_available, expected, round_up=True), expected
    return 0, pods


def next_status(
    budget: Partial[PodDisruptionBudget], pods: Sequence[OnePod], desired: int, expected: int, now: datetime
) -> Plain:
    view = budget.view
    noted = unconfirmed(view, pods, now)
    healthy = sum(
        is_healthy(pod) and pod.view.metadata.deletion_timestamp is None and pod.view.metadata.name not in noted
        for pod in pods
    )
    allowed = max(healthy - desired, 0) if expected > 0 else 0
    reason = "SufficientPods" if allowed else "InsufficientPods"
    return _status(budget, {
        "disruptionsAllowed": allowed, "currentHealthy": healthy, "desiredHealthy": desired, "expectedPods": expected,
    }, noted, (bool(allowed), reason, ""), now)  # fmt: skip


def failed_status(budget: Partial[PodDisruptionBudget], why: str, now: datetime) -> Plain:
    """Nothing may go as long as nobody knows how many there are."""
    before = budget.document.get("status") or {}
    names = ("currentHealthy", "desiredHealthy", "expectedPods")
    numbers = {"disruptionsAllowed": 0, **{name: before.get(name, 0) for name in names}}
    return _status(budget, numbers, before.get("disruptedPods") or {}, (False, "SyncFailed", why), now)


def _status(
    budget: Partial[PodDisruptionBudget], numbers: Plain, noted: Mapping[str, Any], said: tuple[bool, str, str],
    now: datetime,
) -> Plain:  # fmt: skip
    before, view = dict(budget.document.get("status") or {}), budget.view
    made = {**before, **numbers, "observedGeneration": view.metadata.generation}
    made.pop("disruptedPods", None)
    if noted:
        made["disruptedPods"] = dict(noted)
    made["conditions"] = _conditions(before.get("conditions") or [], said, view.metadata.generation, now)
    return made


def _conditions(before: list[Plain], said: tuple[bool, str, str], generation: int, now: datetime) -> list[Plain]:
    allowed, reason, message = said
    others = [each for each in before if each["type"] != "DisruptionAllowed"]
    old = next((each for each in before if each["type"] == "DisruptionAllowed"), None)
    state = "True" if allowed else "False"
    since = old["lastTransitionTime"] if old is not None and old["status"] == state else format_time(now)
    made = {
        "type": "DisruptionAllowed", "status": state, "reason": reason, "message": message,
        "lastTransitionTime": since, "observedGeneration": generation,
    }  # fmt: skip
    return [*others, made]
