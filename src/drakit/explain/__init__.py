"""Explains why a pod waits, what is free and what a change would do: for the CLI, events and the dashboard.

In:  the objects of a cluster, from a live server, from files or from a snapshot.
Out: plain data that can be shown as a table or written as JSON. Pure: no I/O, no clock, no randomness.
"""

from drakit.explain.answers import (
    FoldedNodes,
    FunnelStage,
    GivenDevice,
    MissingDevice,
    ObjectExplanation,
    ObjectName,
    RefusedDevices,
    RequestFunnel,
    Standing,
    Suggestion,
)
from drakit.explain.claims import explain_claim
from drakit.explain.cluster import ClusterObjects, NodeTemplates
from drakit.explain.completion import completed
from drakit.explain.devices import Capacity, DeviceHolder, DeviceRow, DeviceState, Totals, device_rows, totals
from drakit.explain.podgroups import explain_pod, explain_podgroup
from drakit.explain.questions import PodPlacement, WhatIf, WhatIfAnswer
from drakit.explain.selectorlab import ExpressionFault, ExpressionValue, SelectedDevice, SelectorLab, SelectorTrial
from drakit.explain.utilisation import Utilisation, utilisation
from drakit.explain.whatif import what_if

__all__ = [
    "Capacity",
    "ClusterObjects",
    "DeviceHolder",
    "DeviceRow",
    "DeviceState",
    "ExpressionFault",
    "ExpressionValue",
    "FoldedNodes",
    "FunnelStage",
    "GivenDevice",
    "MissingDevice",
    "NodeTemplates",
    "ObjectExplanation",
    "ObjectName",
    "PodPlacement",
    "RefusedDevices",
    "RequestFunnel",
    "SelectedDevice",
    "SelectorLab",
    "SelectorTrial",
    "Standing",
    "Suggestion",
    "Totals",
    "Utilisation",
    "WhatIf",
    "WhatIfAnswer",
    "completed",
    "device_rows",
    "explain_claim",
    "explain_pod",
    "explain_podgroup",
    "totals",
    "utilisation",
    "what_if",
]
