"""One ledger for what pods ask of nodes themselves and what their claims take of them.

In:  a pod with its claims, and the nodes on which they can be allocated.
Out: per node whether it has what all of them take; for the node that was chosen the statuses that go into the pod: the
     ledger of the node counts them from Reserve on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from drakit.allocator import Inventory
from drakit.api import DeviceRequestAllocationResult, Pod
from drakit.base.gates import FeatureGates
from drakit.scheduler.dynamicresources.nodeallocatable.amounts import CannotCount
from drakit.scheduler.dynamicresources.nodeallocatable.devices import NOTHING, MappedDevices
from drakit.scheduler.dynamicresources.nodeallocatable.fit import (
    Demand,
    demand_of,
    refuse_over_budget,
    refuse_overfull,
    refuse_shared,
)
from drakit.scheduler.dynamicresources.nodeallocatable.statuses import Statuses, claim_statuses
from drakit.scheduler.dynamicresources.state.needs import ClaimCharge
from drakit.scheduler.framework import NodeInfo, Nodes, PluginStatus

GATE = "DRANodeAllocatableResources"


class Accounting:
    """Of one scheduler. `devices` must be told of every slice."""

    def __init__(self, inventory: Inventory, nodes: Nodes, gates: FeatureGates) -> None:
        self.devices = MappedDevices(inventory)
        self.enabled = gates.enabled(GATE)
        self._nodes = nodes

    @property
    def is_active(self) -> bool:
        """Whether any device can take something of a node."""
        return self.enabled and bool(self.devices)

    def attempt(self, pod: Pod, allocated: Sequence[ClaimCharge]) -> NodeCharge:
        """Begin with a pod and those of its claims that have their devices already."""
        return NodeCharge(pod, allocated, self.devices, self._nodes)

    def statuses(self, uses: Sequence[ClaimCharge]) -> Statuses:
        """What claims take of the node that was chosen for them. Raise CannotCount."""
        return claim_statuses(uses, self.devices) if self.is_active else ()


class NodeCharge:
    """Of one pod, on one state of the cluster. What is found out for one node holds for all that are alike."""

    def __init__(self, pod: Pod, allocated: Sequence[ClaimCharge], devices: MappedDevices, nodes: Nodes) -> None:
        self._pod = pod
        self._allocated = allocated
        self._devices = devices
        self._nodes = nodes
        self._weighed: dict[tuple[int, int], tuple[object, Demand | PluginStatus]] = {}

    def check(
        self, node: NodeInfo, answer: object, allocate: Callable[[], Sequence[ClaimCharge]]
    ) -> PluginStatus | None:
        """Refuse the node, or none.

        `allocate` tells what the other claims would get there; nodes for which `answer` is the same object have devices
        at the same places for them.
        """
        key = (self.kind_of(node), id(answer))
        known = self._weighed.get(key)
        if known is None:
            known = self._weighed[key] = (answer, self._weigh(key[0], allocate))
        return known[1] if isinstance(known[1], PluginStatus) else refuse_overfull(node, known[1])

    def kind_of(self, node: NodeInfo) -> int:
        """The same for nodes whose devices take the same, one by one."""
        return self._devices.kind_of(node.name)

    def mapped(self, uses: Sequence[ClaimCharge], resource: str = "") -> list[DeviceRequestAllocationResult]:
        """The devices that take something of their node: of this resource, or of any."""
        found = [
            (self._devices.find(each.driver, each.pool, each.device), each)
            for use in uses
            for each in use.allocation.devices.results
        ]
        taken = [(device.node_allocatable_resource_mappings, each) for device, each in found if device is not None]
        return [each for mappings, each in taken if (resource in mappings if resource else mappings)]

    def _weigh(self, kind: int, allocate: Callable[[], Sequence[ClaimCharge]]) -> Demand | PluginStatus:
        try:
            if self._shared is not None:
                return self._shared
            more = claim_statuses(allocate(), self._devices) if kind != NOTHING else ()
            statuses = (*self._before, *more)
        except CannotCount as error:
            return PluginStatus.failed(error)
        if not statuses:
            return ()
        return refuse_over_budget(self._pod, statuses) or demand_of(self._pod, statuses)

    @cached_property
    def _before(self) -> Statuses:
        return claim_statuses(self._allocated, self._devices)

    @cached_property
    def _shared(self) -> PluginStatus | None:
        taking = {status.resource_claim_name for status in self._before}
        claims = [use.claim for use in self._allocated if use.claim.metadata.name in taking]
        return refuse_shared(self._pod, claims, self._nodes) if claims else None
