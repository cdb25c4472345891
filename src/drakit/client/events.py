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


def event_mark(*parts: str) -> str:
    """What tells events about one object apart. The last part is the message; combined ones share theirs."""
    *what, message = parts
    said = COMBINED if message.startswith(COMBINED) else message
    return hashlib.sha256("\0".join((*what, said)).encode()).hexdigest()[:_MARK_LENGTH]


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
            await self._write(event)
        except DrakitError as error:
            log.warning("event %s about %s is lost: %s", reason, event["metadata"]["name"], error)

    async def _write(self, event: dict[str, Any]) -> None:
        try:
            await self._client.create(event)
        except AlreadyExists:
            # One event stands for many messages: it shows the latest.
            latest = event["message"] if event["message"].startswith(COMBINED) else ""
            place = event["metadata"]
            await self._repeat(place["name"], place["namespace"], event["lastTimestamp"], latest)

    async def _repeat(self, name: str, namespace: str, now: str, message: str) -> None:
        # Components may write events and not read them: the answer to a patch tells what the count was.
        changed = {"lastTimestamp": now, **({"message": message} if message else {})}
        found = await self._client.patch_named(EVENTS, name, changed, namespace=namespace)
        await self._client.patch(found, {"count": found.view.count + 1})

    def _event(self, involved: dict[str, str], namespace: str, reason: str, message: str, type_: str) -> dict[str, Any]:
        now = format_time(self._clock.now())
        mark = event_mark(involved["uid"], type_, reason, message)
        if namespace:
            involved["namespace"] = namespace
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{involved['name'][:_LONGEST_STEM].rstrip('-.')}.{mark}",
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
