"""Why a pod waits, what is free, what if: one answer for the command line, events and the page.

In:  the objects of a cluster, from a live server, from files or from a snapshot.
Out: plain data that can be shown as a table or written as JSON. Pure: no I/O, no clock, no randomness.
"""

from drakit.explain.cluster import ClusterObjects
from drakit.explain.devices import Capacity, DeviceHolder, DeviceRow, DeviceState, Totals, device_rows, totals

__all__ = [
    "Capacity",
    "ClusterObjects",
    "DeviceHolder",
    "DeviceRow",
    "DeviceState",
    "Totals",
    "device_rows",
    "totals",
]
