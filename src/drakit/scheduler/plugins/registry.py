"""Which plugin a name in a configuration stands for.

A maker gets the handle and the plugin's args as the configuration gives them (None: the plugin's defaults).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from drakit.scheduler.config import names
from drakit.scheduler.dynamicresources import DynamicResources
from drakit.scheduler.framework import Handle, NodeInfo, Plugin
from drakit.scheduler.plugins.amounts import Totals
from drakit.scheduler.plugins.balancedallocation import BalancedAllocation
from drakit.scheduler.plugins.defaultbinder import DefaultBinder
from drakit.scheduler.plugins.fit import NodeResourcesFit
from drakit.scheduler.plugins.nodeaffinity import NodeAffinityPlugin
from drakit.scheduler.plugins.nodename import NodeName
from drakit.scheduler.plugins.nodeports import NodePorts
from drakit.scheduler.plugins.nodeunschedulable import NodeUnschedulable
from drakit.scheduler.plugins.prioritysort import PrioritySort
from drakit.scheduler.plugins.schedulinggates import SchedulingGates
from drakit.scheduler.plugins.tainttoleration import TaintToleration
from drakit.scheduler.plugins.topology.affinity import InterPodAffinity
from drakit.scheduler.plugins.topology.spread import PodTopologySpread
from drakit.scheduler.podgroups.gangscheduling import GangScheduling

Maker = Callable[[Handle, Any], Plugin]


def _fit(handle: Handle, args: Any) -> Plugin:
    def is_backed_by_class(resource: str, node: NodeInfo) -> bool:
        # Asked when a pod is looked at: the plugin that answers may be made later.
        return handle.extended_resources.is_backed_by_class(resource, node)

    def is_advertised(resource: str) -> bool:
        return handle.extended_resources.is_advertised(resource)

    return NodeResourcesFit(
        args, is_backed_by_class=is_backed_by_class, is_advertised=is_advertised, totals=_totals(handle)
    )


def _totals(handle: Handle) -> Totals:
    def totals(resource: str, node: NodeInfo) -> tuple[int, int]:
        return handle.extended_resources.totals(resource, node)

    return totals


MAKERS: dict[str, Maker] = {
    names.SCHEDULING_GATES: lambda handle, args: SchedulingGates(),
    names.PRIORITY_SORT: lambda handle, args: PrioritySort(),
    names.NODE_UNSCHEDULABLE: lambda handle, args: NodeUnschedulable(handle.nodes),
    names.NODE_NAME: lambda handle, args: NodeName(),
    names.TAINT_TOLERATION: lambda handle, args: TaintToleration(handle.nodes),
    names.NODE_AFFINITY: lambda handle, args: NodeAffinityPlugin(args),
    names.NODE_PORTS: lambda handle, args: NodePorts(),
    names.NODE_RESOURCES_FIT: _fit,
    names.BALANCED_ALLOCATION: lambda handle, args: BalancedAllocation(args, totals=_totals(handle)),
    names.DYNAMIC_RESOURCES: DynamicResources,
    names.POD_TOPOLOGY_SPREAD: PodTopologySpread,
    names.INTER_POD_AFFINITY: InterPodAffinity,
    names.DEFAULT_BINDER: lambda handle, args: DefaultBinder(handle.client),
    names.GANG_SCHEDULING: lambda handle, args: GangScheduling(handle),
}
