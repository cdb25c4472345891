"""Events: what a component tells people about an object.

In:  an object, a reason, a message.
Out: an Event in the object's namespace. The same thing again, also after a restart, raises the count of the one event.

An event that cannot be written is logged: it never keeps a component from its work.
"""

from __future__ import annotations

import hashlib
import logging
from typing import Any

from drakit.api.text.times import format_time
from drakit.base.clock import Clock
from drakit.base.errors import DrakitError
from drakit.client import EVENTS, AlreadyExists, Client, V, metadata_of
from drakit.client.correlation import COMBINED, EventCorrelator

log = logging.getLogger("drakit.client")

NORMAL = "Normal"
WARNING = "Warning"
_PLACE_OF_CLUSTER_OBJECTS = "default"
_MARK_LENGTH = 16
_LONGEST_STEM = 253 - _MARK_LENGTH - 1


def event_name(name: str, *parts: str) -> str:
    """The name of an event about the object of that name.

    `parts` tell it from others about the object; the last one is the message, and combined ones share theirs.
    """
    *what, message = parts
    said = COMBINED if message.startswith(COMBINED) else message
    mark = hashlib.sha256("\0".join((*what, said)).encode()).hexdigest()[:_MARK_LENGTH]
    return f"{name[:_LONGEST_STEM].rstrip('-.')}.{mark}"


async def write_event(client: Client, event: dict[str, Any]) -> None:
    """Create the event; one that is there already is counted once more. Raise DrakitError."""
    place = event["metadata"]
    try:
        await client.create(event)
    except AlreadyExists:
        changed = {"lastTimestamp": event["lastTimestamp"]}
        if event["message"].startswith(COMBINED):  # it stands for many messages, and shows the latest
            changed["message"] = event["message"]
        # Components may write events and not read them: the answer to a patch tells what the count was.
        found = await client.patch_named(EVENTS, place["name"], changed, namespace=place["namespace"])
        await client.patch(found, {"count": found.view.count + 1})


class EventRecorder:
    """Of one component."""

    def __init__(self, client: Client, clock: Clock, component: str) -> None:
        self._client = client
        self._clock = clock
        self._component = component
        self._correlator = EventCorrelator(clock)

    async def tell(self, kind: str, api_version: str, obj: Any, reason: str, message: str, *, type_: str) -> None:
        """Tell of an object of that kind."""
        metadata = metadata_of(obj)
        involved = {"kind": kind, "apiVersion": api_version, "name": metadata.name, "uid": metadata.uid}
        told = self._correlator.message(involved, type_, reason, message)
        if told is None:
            log.log(V[2], "event %s about %s is one of too many: %s", reason, metadata.name, message)
            return
        event = self._event(involved, metadata.namespace, reason, told, type_)
        try:
            await write_event(self._client, event)
        except DrakitError as error:
            log.warning("event %s about %s is lost: %s", reason, event["metadata"]["name"], error)

    def _event(self, involved: dict[str, str], namespace: str, reason: str, message: str, type_: str) -> dict[str, Any]:
        now = format_time(self._clock.now())
        if namespace:
            involved["namespace"] = namespace
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": event_name(involved["name"], involved["uid"], type_, reason, message),
                "namespace": namespace or _PLACE_OF_CLUSTER_OBJECTS,
            },
            "involvedObject": involved,
            "reason": reason,
            "message": message,
            "type": type_,
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": "",
        }
