"""Devices that take something of their node: cpu, memory, hugepages (KEP-5517, gate DRANodeAllocatableResources).

In:  slices whose devices map to node resources, and pods whose claims get such devices.
Out: refusals in Filter, statuses for the ledger in Reserve, and the pod's status in PreBind.
"""

from drakit.scheduler.dynamicresources.nodeallocatable.accounting import GATE, Accounting, NodeCharge
from drakit.scheduler.dynamicresources.nodeallocatable.amounts import CannotCount
from drakit.scheduler.dynamicresources.nodeallocatable.hints import interests
from drakit.scheduler.dynamicresources.nodeallocatable.statuses import (
    Statuses,
    containers_by_claim,
    with_statuses,
)
from drakit.scheduler.dynamicresources.nodeallocatable.writes import clear_statuses, write_statuses

__all__ = [
    "GATE",
    "Accounting",
    "CannotCount",
    "NodeCharge",
    "Statuses",
    "clear_statuses",
    "containers_by_claim",
    "interests",
    "with_statuses",
    "write_statuses",
]
