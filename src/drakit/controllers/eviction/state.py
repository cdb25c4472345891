"""What the eviction of pods depends on, kept up to date.

In:  slices, rules, classes, claims and pods, as they change.
Out: an inventory; per pod, what is allocated to it; and calls for every pod that a change may concern.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from drakit.allocator import Inventory
from drakit.api import (
    DeviceClass,
    DeviceRequestAllocationResult,
    DeviceTaintRule,
    Pod,
    ResourceClaim,
    ResourceSlice,
    claim_names,
    is_reserved_for_pod,
    results_of,
)
from drakit.api.objects.partial import Partial
from drakit.client import CLAIMS, CLASSES, PODS, SLICES, TAINT_RULES, Key, key_of
from drakit.controllers.context import ControllerContext
from drakit.controllers.eviction.deadlines import Eviction, eviction
from drakit.informers import Informer


class EvictionState:
    def __init__(self, context: ControllerContext, concerned: Callable[[Key], None]) -> None:
        """`concerned` is told of pods whose eviction is to be judged anew."""
        informers = context.informers
        self.inventory = Inventory(context.gates)
        self.pods: Informer[Partial[Pod]] = informers.of(PODS)
        self.claims: Informer[ResourceClaim] = informers.of(CLAIMS)
        self._slices: Informer[ResourceSlice] = informers.of(SLICES)
        self.rules: Informer[DeviceTaintRule] | None = None
        self._concerned = concerned
        self.pods.add_index("claims", by_any_claim)
        self.claims.add_index("pool", by_pool)
        self._slices.subscribe(self._slice_changed)
        if context.gates.enabled("DRADeviceTaintRules"):
            self.rules = informers.of(TAINT_RULES)
            self.rules.subscribe(self._rule_changed)
            informers.of(CLASSES).subscribe(self._class_changed)
        self.claims.subscribe(self._claim_changed)
        self.pods.subscribe(self._pod_changed)

    def devices_of(self, pod: Pod) -> Iterator[DeviceRequestAllocationResult]:
        """What a pod has through its claims, those of its group and of extended resources included."""
        for name in claim_names(pod).values():
            claim = self.claims.cache.named(name, pod.metadata.namespace)
            if claim is not None and is_reserved_for_pod(claim, pod):
                yield from results_of(claim)

    def judge(self, pod: Pod, *, as_if: str = "") -> Eviction | None:
        """When a pod must go. Pods without a node, that have ended or are being deleted, need not."""
        if not pod.spec.node_name or pod.is_terminal or pod.metadata.deletion_timestamp is not None:
            return None
        return eviction(self.inventory, self.devices_of(pod), as_if=as_if)

    def pending(self, rule: str, *, as_if: bool = False) -> list[Key]:
        """The pods that must go because of a rule; or would have to, if its effect was NoExecute."""
        judged = ((pod, self.judge(pod.view, as_if=rule if as_if else "")) for pod in self.pods.cache)
        return [key_of(pod) for pod, found in judged if found is not None and rule in found.rules]

    def _slice_changed(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        if new is not None:
            self.inventory.put_slice(new)
        elif old is not None:
            self.inventory.remove_slice(old.metadata.name)
        pools = {(each.spec.driver, each.spec.pool.name) for each in (old, new) if each is not None}
        for pool in pools:
            for claim in self.claims.by("pool", pool):
                self._users_concerned(claim)

    def _rule_changed(self, old: DeviceTaintRule | None, new: DeviceTaintRule | None) -> None:
        if old is not None and new is not None and old.spec == new.spec:
            return
        if new is not None:
            self.inventory.put_rule(new)
        elif old is not None:
            self.inventory.remove_rule(old.metadata.name)
        self._all_concerned()

    def _class_changed(self, old: DeviceClass | None, new: DeviceClass | None) -> None:
        if new is not None:
            self.inventory.put_class(new)
        elif old is not None:
            self.inventory.remove_class(old.metadata.name)
        if self.inventory.rules:
            self._all_concerned()

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        claim = new if new is not None else old
        if claim is not None:
            for pod in self.pods.by("claims", tuple(key_of(claim))):
                self._pod_changed(None, pod)

    def _pod_changed(self, _old: Partial[Pod] | None, new: Partial[Pod] | None) -> None:
        """Most pods need not go: they are not queued."""
        if new is not None and self.judge(new.view) is not None:
            self._concerned(key_of(new))

    def _all_concerned(self) -> None:
        for claim in self.claims.cache:
            if claim.status.allocation is not None:
                self._users_concerned(claim)

    def _users_concerned(self, claim: ResourceClaim) -> None:
        for key in self.pods.cache.keys_by("claims", tuple(key_of(claim))):
            self._concerned(key)


def by_any_claim(pod: Any) -> list[tuple[str, str]]:
    """Index function of pods: all their claims, that of extended resources too, as (namespace, name)."""
    return [(pod.view.metadata.namespace, name) for name in claim_names(pod.view).values()]


def by_pool(claim: ResourceClaim) -> list[tuple[str, str]]:
    """Index function of claims: the pools of what is allocated, as (driver, pool)."""
    return [(each.driver, each.pool) for each in results_of(claim)]
