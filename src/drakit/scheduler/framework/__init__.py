"""What a scheduling plugin is: extension points, what they answer, what they are given, the events that wake pods.

The rest of the scheduler meets here: the queue and the cycles call plugins through these types, and plugins know
nothing of queue and cycles.
"""

from drakit.scheduler.framework.cycle import CycleState, on_node
from drakit.scheduler.framework.events import (
    Action,
    ClusterEvent,
    EventResource,
    EventScope,
    Hint,
    HintFunction,
    Interest,
)
from drakit.scheduler.framework.extended import ExtendedResources
from drakit.scheduler.framework.handle import Handle, RecordEvent
from drakit.scheduler.framework.nodes import NodeInfo, Nodes
from drakit.scheduler.framework.plugins import (
    Bind,
    EnqueueExtensions,
    Filter,
    Permit,
    Plugin,
    PostFilter,
    PreBind,
    PreemptionExtensions,
    PreEnqueue,
    PreFilter,
    Rejections,
    RemovePods,
    Reserve,
    Score,
    WaitsBeforeBind,
)
from drakit.scheduler.framework.profile import Profile
from drakit.scheduler.framework.statuses import SKIP, SUCCESS, Code, PluginStatus, Unfinished

__all__ = [
    "SKIP",
    "SUCCESS",
    "Action",
    "Bind",
    "ClusterEvent",
    "Code",
    "CycleState",
    "EnqueueExtensions",
    "EventResource",
    "EventScope",
    "ExtendedResources",
    "Filter",
    "Handle",
    "Hint",
    "HintFunction",
    "Interest",
    "NodeInfo",
    "Nodes",
    "Permit",
    "Plugin",
    "PluginStatus",
    "PostFilter",
    "PreBind",
    "PreEnqueue",
    "PreFilter",
    "PreemptionExtensions",
    "Profile",
    "RecordEvent",
    "Rejections",
    "RemovePods",
    "Reserve",
    "Score",
    "Unfinished",
    "WaitsBeforeBind",
    "on_node",
]
