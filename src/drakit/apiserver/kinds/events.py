"""Events in their two groups: the same object with other field names.

In:  an event of events.k8s.io/v1, or the core one that is stored.
Out: the same event in the other form.

The server treats `events.k8s.io/v1` as one more version of the core Event: an event that is written in one group can be
read in the other.
"""

from __future__ import annotations

from drakit.api.objects.plain import Plain
from drakit.apiserver.kinds.served import known_kind

GROUP_VERSION = "events.k8s.io/v1"
CORE = known_kind("v1", "Event")
_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_CORE_NAMES = {new: core for core, new in _NAMES.items()}


def from_core(event: Plain) -> Plain:
    return {_NAMES.get(name, name): value for name, value in event.items()}


def to_core(event: Plain) -> Plain:
    return {_CORE_NAMES.get(name, name): value for name, value in event.items()} | {"apiVersion": "v1"}


def core_field(name: str) -> str:
    """The name of a selectable field in the core group."""
    head, dot, rest = name.partition(".")
    return _CORE_NAMES.get(head, head) + dot + rest
