"""Pod disruption budgets: the status says how many pods may be evicted now.

In:  budgets, pods, and the workloads that own pods.
Out: the status of each budget. Evictions, drains and preemption read it.
"""

from __future__ import annotations

import logging

from drakit.api.objects.meta import OwnerReference
from drakit.api.objects.partial import Partial
from drakit.api.objects.policy import PodDisruptionBudget
from drakit.base.labels import LabelMatcher, from_struct
from drakit.client import BUDGETS, DEPLOYMENTS, PODS, REPLICA_SETS, Key, key_of, resource_named
from drakit.client.events import WARNING
from drakit.client.resources import resource
from drakit.controllers.budgets.status import (
    CONFIRMED_WITHIN,
    OnePod,
    desired_healthy,
    failed_status,
    next_status,
    unconfirmed,
)
from drakit.controllers.context import ControllerContext
from drakit.informers import Informer, Result

log = logging.getLogger("drakit.controllers")

COMPONENT = "disruption-controller"
OneBudget = Partial[PodDisruptionBudget]


class NoScale(Exception):
    """A pod's owner does not say how many pods it wants."""


class BudgetController:
    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client_of(COMPONENT)
        self._clock = context.clock
        self._recorder = context.recorder(self._client, "controllermanager")
        self._budgets: Informer[OneBudget] = context.informers.of(BUDGETS)
        self._pods: Informer[OnePod] = context.informers.of(PODS)
        self._scaled = {
            kind: context.informers.of(each)
            for kind, each in (
                ("ReplicaSet", REPLICA_SETS), ("Deployment", DEPLOYMENTS), ("StatefulSet", resource("statefulsets")),
                ("ReplicationController", resource("replicationcontrollers")),
            )
        }  # fmt: skip
        self.loop = context.loop("disruption", self.reconcile)
        self.loops = (self.loop,)
        self._budgets.enqueue(self.loop.queue.add)
        self._pods.enqueue(self.loop.queue.add, self._budgets_of)
        for informer in self._scaled.values():
            informer.enqueue(self._wake)

    def _budgets_of(self, pod: OnePod) -> list[Key]:
        metadata = pod.view.metadata
        found = self._budgets.cache.all(metadata.namespace)
        return [key_of(each) for each in found if (by := _selector(each)) is not None and by.matches(metadata.labels)]

    def _wake(self, key: Key) -> None:
        """A workload was scaled: the budgets beside it may be about its pods."""
        for budget in self._budgets.cache.all(key.namespace):
            self.loop.queue.add(key_of(budget))

    async def reconcile(self, key: Key) -> Result:
        budget = self._budgets.cache.get(key)
        if budget is None or budget.view.metadata.deletion_timestamp is not None:
            return Result.done()
        selector, now = _selector(budget), self._clock.now()
        told: tuple[str, str] | None
        pods = [pod for pod in self._pods.cache.all(key.namespace) if selector and selector.matches(_labels(pod))]
        try:
            expected = len(pods) if isinstance(budget.view.spec.min_available, int) else self._expected(pods)
        except NoScale as error:
            status, told = failed_status(budget, str(error), now), ("CalculateExpectedPodCountFailed", str(error))
        else:
            told = _unmanaged(budget, pods)
            desired, expected = desired_healthy(budget.view, len(pods), expected)
            status = next_status(budget, pods, desired, expected, now)
        if status != (budget.document.get("status") or {}):
            # Told only along with a change of status: the same problem is not told at each look.
            if told is not None:
                await self._recorder.tell("PodDisruptionBudget", "policy/v1", budget, *told, type_=WARNING)
            await self._client.update({**budget.document, "status": status}, subresource="status")
        waiting = unconfirmed(budget.view, pods, now)
        return Result.after(CONFIRMED_WITHIN.total_seconds()) if waiting else Result.done()

    def _expected(self, pods: list[OnePod]) -> int:
        """How many pods the workloads behind these want, each workload once."""
        wanted: dict[str, int] = {}
        for pod in pods:
            owner = pod.view.metadata.controller
            if owner is not None and owner.uid not in wanted:
                uid, replicas = self._scale(owner, pod.view.metadata.namespace)
                wanted[owner.uid] = 0  # a workload above it may have been counted by way of another
                wanted[uid] = replicas
        return sum(wanted.values())

    def _scale(self, owner: OwnerReference, namespace: str) -> tuple[str, int]:
        informer = self._scaled.get(owner.kind)
        found = informer.cache.get(Key(namespace, owner.name)) if informer is not None else None
        if found is None or found.view.metadata.uid != owner.uid:
            known = resource_named(owner.api_version, owner.kind)
            plural = known.name if known is not None else owner.kind
            raise NoScale(f"{plural} does not implement the scale subresource")
        above = found.view.metadata.controller
        if owner.kind == "ReplicaSet" and above is not None and above.kind == "Deployment":
            return self._scale(above, namespace)
        return owner.uid, int((found.document.get("spec") or {}).get("replicas") or 0)


def _unmanaged(budget: OneBudget, pods: list[OnePod]) -> tuple[str, str] | None:
    """What is to be told of pods that no workload wants a number of."""
    loose = any(pod.view.metadata.controller is None for pod in pods)
    if not loose or isinstance(budget.view.spec.min_available, int):
        return None
    return "UnmanagedPods", (
        f"Pods selected by this PodDisruptionBudget (selector: {_selector(budget)}) were found to be unmanaged. "
        "As a result, the status of the PDB cannot be calculated correctly, which may result in undefined "
        'behavior. To account for these pods please set ".spec.minAvailable" field of the PDB to an integer value.'
    )


def _labels(pod: OnePod) -> dict[str, str]:
    return dict(pod.view.metadata.labels)


def _selector(budget: OneBudget) -> LabelMatcher | None:
    return from_struct(budget.view.spec.selector) if budget.view.spec.selector is not None else None
