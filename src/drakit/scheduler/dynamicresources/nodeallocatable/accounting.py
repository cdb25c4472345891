"""One ledger for what pods ask of nodes themselves and what their claims take of them.

In:  a pod with its claims, and the nodes on which they can be allocated.
Out: per node a refusal, or the statuses that go into the pod: the node's ledger counts them from Reserve on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from drakit.allocator import Inventory
from drakit.api import Pod
from drakit.base.gates import FeatureGates
from drakit.scheduler.dynamicresources.nodeallocatable.amounts import CannotCount
from drakit.scheduler.dynamicresources.nodeallocatable.devices import MappedDevices
from drakit.scheduler.dynamicresources.nodeallocatable.fitting import (
    refuse_over_budget,
    refuse_overfull,
    refuse_shared,
)
from drakit.scheduler.dynamicresources.nodeallocatable.statuses import Statuses, Use, claim_statuses
from drakit.scheduler.framework import NodeInfo, Nodes, Status

GATE = "DRANodeAllocatableResources"


class Accounting:
    """Of one scheduler. `devices` must be told of every slice."""

    def __init__(self, inventory: Inventory, nodes: Nodes, gates: FeatureGates) -> None:
        self.devices = MappedDevices(inventory)
        self.enabled = gates.enabled(GATE)
        self._nodes = nodes

    def attempt(self, pod: Pod, allocated: Sequence[Use]) -> Attempt | None:
        """Begin with a pod and those of its claims that have their devices already; None when nothing can count."""
        return Attempt(pod, allocated, self.devices, self._nodes) if self.enabled and self.devices else None


class Attempt:
    """Of one pod, on one state of the cluster. `statuses` by node, of the nodes that were judged and fit."""

    def __init__(self, pod: Pod, allocated: Sequence[Use], devices: MappedDevices, nodes: Nodes) -> None:
        self.statuses: dict[str, Statuses] = {}
        self._pod = pod
        self._allocated = allocated
        self._devices = devices
        self._nodes = nodes

    def judge(self, node: NodeInfo, allocate: Callable[[], Sequence[Use]]) -> Status | None:
        """Refuse the node or keep what the claims take of it; `allocate` gives what the other claims get there."""
        self.statuses.pop(node.name, None)
        try:
            if self._shared is not None:
                return self._shared
            more = claim_statuses(allocate(), self._devices) if self._devices.seen_by(node.name) else ()
            statuses = tuple(sorted((*self._before, *more), key=lambda each: each.resource_claim_name))
        except CannotCount as error:
            return Status.failed(error)
        if not statuses:
            return None
        refusal = refuse_over_budget(self._pod, statuses) or refuse_overfull(self._pod, node, statuses)
        if refusal is None:
            self.statuses[node.name] = statuses
        return refusal

    @cached_property
    def _before(self) -> Statuses:
        return claim_statuses(self._allocated, self._devices)

    @cached_property
    def _shared(self) -> Status | None:
        taking = {status.resource_claim_name for status in self._before}
        claims = [use.claim for use in self._allocated if use.claim.metadata.name in taking]
        return refuse_shared(self._pod, claims, self._nodes) if claims else None
