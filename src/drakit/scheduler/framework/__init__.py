"""What a scheduling plugin is: extension points, what they answer, what they are given, the events that wake pods.

The rest of the scheduler meets here: the queue and the cycles call plugins through these types, and plugins know
nothing of queue and cycles.
"""

from drakit.scheduler.framework.cycle import CycleState, on_node
from drakit.scheduler.framework.events import Action, ClusterEvent, EventResource, Hint, HintFunction, Interest, Scope
from drakit.scheduler.framework.extended import ExtendedResources
from drakit.scheduler.framework.handle import Handle, Record
from drakit.scheduler.framework.nodes import NodeInfo, Nodes
from drakit.scheduler.framework.plugins import (
    Binder,
    Filter,
    Informed,
    Keeps,
    Permit,
    Plugin,
    PostFilter,
    PreBind,
    PreEnqueue,
    PreFilter,
    Rejections,
    Reserve,
    Score,
    Waits,
    Without,
)
from drakit.scheduler.framework.statuses import SKIP, SUCCESS, Code, Status

__all__ = [
    "SKIP",
    "SUCCESS",
    "Action",
    "Binder",
    "ClusterEvent",
    "Code",
    "CycleState",
    "EventResource",
    "ExtendedResources",
    "Filter",
    "Handle",
    "Hint",
    "HintFunction",
    "Informed",
    "Interest",
    "Keeps",
    "NodeInfo",
    "Nodes",
    "Permit",
    "Plugin",
    "PostFilter",
    "PreBind",
    "PreEnqueue",
    "PreFilter",
    "Record",
    "Rejections",
    "Reserve",
    "Scope",
    "Score",
    "Status",
    "Waits",
    "Without",
    "on_node",
]
