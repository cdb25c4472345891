"""What all parts of the plugin look at: devices, claims and groups as they are now, the gates, and the settings.

Profiles of one scheduler have a plugin each, and one view of the devices between them: what one has reserved, the
others must not give away.
"""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

from drakit.allocator import Inventory
from drakit.api.objects.pods import Pod
from drakit.api.objects.workloads import PodGroup
from drakit.api.podclaims import pod_group_name
from drakit.client import CLAIMS, POD_GROUPS, Key
from drakit.informers import Informer
from drakit.scheduler.config.args import BINDING_TIMEOUT, DynamicResourcesArgs
from drakit.scheduler.dynamicresources.state.budgets import ON_LOOP, AttemptBudget, BackgroundSearch
from drakit.scheduler.dynamicresources.state.claims import Claims
from drakit.scheduler.dynamicresources.state.departures import Departures
from drakit.scheduler.dynamicresources.state.devices import follow_devices
from drakit.scheduler.dynamicresources.state.holds import Holds
from drakit.scheduler.dynamicresources.state.suitable import SuitableNodesByPlan
from drakit.scheduler.framework import Code, Handle, PluginStatus
from drakit.scheduler.metrics.devices import DeviceMetrics

NAME = "DynamicResources"


class SharedDevices(NamedTuple):
    """Shared by all profiles of a scheduler."""

    inventory: Inventory
    claims: Claims
    holds: Holds
    departures: Departures


class PluginContext:
    def __init__(self, handle: Handle, args: DynamicResourcesArgs | None = None) -> None:
        args = args or DynamicResourcesArgs()
        gates = handle.gates
        self.handle = handle
        self.client = handle.client
        self.clock = handle.clock
        shared = handle.shared(NAME, lambda: _make_shared(handle))
        self.inventory, self.claims, self.holds, self.departures = shared
        self.filter_timeout = args.filter_timeout if gates.enabled("DRASchedulerFilterTimeout") else None
        self.background = BackgroundSearch(handle.clock, self.filter_timeout or 0.0)
        # Where nobody can be evicted for devices, it says as kube-scheduler does that preemption cannot help.
        code = Code.UNSCHEDULABLE if args.preemption else Code.UNRESOLVABLE
        self.cannot_allocate = PluginStatus(code, ("cannot allocate all claims",))
        self.device_strategy = args.device_strategy
        self.binding_timeout = args.binding_timeout or BINDING_TIMEOUT
        self.binding_conditions = gates.enabled("DRADeviceBindingConditions") and gates.enabled(
            "DRAResourceClaimDeviceStatus"
        )
        self.suitable = SuitableNodesByPlan()
        self.given_back: dict[str, None] = {}
        """Pods, the latest last, that gave devices back which no claim ever had: no event tells of these."""
        self.metrics = handle.shared(f"metrics of {NAME}", lambda: DeviceMetrics(handle.registry))
        self.prioritized = gates.enabled("DRAPrioritizedList")
        self.groups: Informer[PodGroup] | None = None
        if gates.enabled("DRAWorkloadResourceClaims"):
            self.groups = handle.informers.of(POD_GROUPS)

    def budget(self) -> AttemptBudget | None:
        """The time of an attempt that begins now; None: as long as it takes."""
        if not self.filter_timeout:
            return None
        return AttemptBudget(self.handle.clock, self.filter_timeout, ON_LOOP)

    def seen_by(self, pod: Pod) -> PluginContext:
        """The context in which devices count as free whose holds do not apply to this pod."""
        return self.on(self.holds.seen_by(pod))

    def on(self, inventory: Inventory) -> PluginContext:
        """The same context with another inventory."""
        if inventory is self.inventory:
            return self
        other = copy(self)
        other.inventory = inventory
        return other

    def group_of(self, pod: Pod) -> tuple[str | None, PodGroup | None]:
        """The name of the pod's group, where groups have claims; and the group, when it is there."""
        name = pod_group_name(pod) if self.groups is not None else None
        if name is None or self.groups is None:
            return None, None
        return name, self.groups.cache.get(Key(pod.metadata.namespace, name))


def _make_shared(handle: Handle) -> SharedDevices:
    inventory = follow_devices(handle.informers, handle.gates)
    holds = Holds(inventory)
    claims = Claims(handle.informers.of(CLAIMS), inventory, holds)
    return SharedDevices(inventory, claims, holds, Departures(handle.informers, handle.nodes))
