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
from drakit.client import EVENTS, AlreadyExists, Client, metadata_of

log = logging.getLogger("drakit.client")

NORMAL = "Normal"
WARNING = "Warning"
_PLACE_OF_CLUSTER_OBJECTS = "default"
_MARK_LENGTH = 16
_LONGEST_STEM = 253 - _MARK_LENGTH - 1


class EventRecorder:
    """Of one component."""

    def __init__(self, client: Client, clock: Clock, component: str) -> None:
        self._client = client
        self._clock = clock
        self._component = component

    async def tell(self, kind: str, api_version: str, obj: Any, reason: str, message: str, *, type_: str) -> None:
        """Tell of an object of that kind."""
        event = self._event(kind, api_version, obj, reason, message, type_)
        try:
            await self._write(event)
        except DrakitError as error:
            log.warning("event %s about %s is lost: %s", reason, event["metadata"]["name"], error)

    async def _write(self, event: dict[str, Any]) -> None:
        try:
            await self._client.create(event)
        except AlreadyExists:
            await self._repeat(event["metadata"]["name"], event["metadata"]["namespace"], event["lastTimestamp"])

    async def _repeat(self, name: str, namespace: str, now: str) -> None:
        # Components may write events and not read them: the answer to a patch tells what the count was.
        found = await self._client.patch_named(EVENTS, name, {"lastTimestamp": now}, namespace=namespace)
        await self._client.patch(found, {"count": found.view.count + 1})

    def _event(self, kind: str, api_version: str, obj: Any, reason: str, message: str, type_: str) -> dict[str, Any]:
        metadata = metadata_of(obj)
        now = format_time(self._clock.now())
        mark = hashlib.sha256("\0".join((metadata.uid, type_, reason, message)).encode()).hexdigest()[:_MARK_LENGTH]
        involved = {"kind": kind, "apiVersion": api_version, "name": metadata.name, "uid": metadata.uid}
        if metadata.namespace:
            involved["namespace"] = metadata.namespace
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{metadata.name[:_LONGEST_STEM].rstrip('-.')}.{mark}",
                "namespace": metadata.namespace or _PLACE_OF_CLUSTER_OBJECTS,
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
