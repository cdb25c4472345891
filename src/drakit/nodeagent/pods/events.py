"""Events about pods: what `kubectl describe` shows.

In:  a pod, a reason, a message, the container it is about.
Out: Events in the pod's namespace, written beside the work that tells them. The same thing again raises the count.

An event that cannot be written is logged; it never holds up a pod.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import deque
from dataclasses import dataclass
from typing import Any

from drakit.api.text.times import format_time
from drakit.base.clock import Clock
from drakit.base.errors import DrakitError
from drakit.client import EVENTS, AlreadyExists, Client
from drakit.nodeagent.runtimes.contract import PodIdentity

log = logging.getLogger("drakit.nodeagent")

NORMAL, WARNING = "Normal", "Warning"
COMPONENT = "kubelet"
"""Tools look for the kubelet's events by this name."""
_MARK_LENGTH = 16
_LONGEST_STEM = 253 - _MARK_LENGTH - 1
_MOST_WAITING = 1000


@dataclass(frozen=True, slots=True)
class _Told:
    involved: dict[str, str]
    type: str
    reason: str
    message: str


class EventLog:
    """Writes events one after the other, in the order in which they were told."""

    def __init__(self, client: Client, clock: Clock, node: str) -> None:
        self._client = client
        self._clock = clock
        self._node = node
        self._waiting: deque[_Told] = deque(maxlen=_MOST_WAITING)
        self._wake = asyncio.Event()

    def about_pod(
        self, pod: PodIdentity, type_: str, reason: str, message: str, *, container: str = "", field: str = "containers"
    ) -> None:
        """`field` is the one of the pod's spec that lists the container."""
        involved = {
            "kind": "Pod",
            "apiVersion": "v1",
            "name": pod.name,
            "namespace": pod.namespace,
            "uid": pod.uid,
        }
        if container:
            involved["fieldPath"] = f"spec.{field}{{{container}}}"
        self._tell(_Told(involved, type_, reason, message))

    def about_node(self, type_: str, reason: str, message: str) -> None:
        involved = {"kind": "Node", "apiVersion": "v1", "name": self._node, "uid": self._node}
        self._tell(_Told(involved, type_, reason, message))

    def _tell(self, told: _Told) -> None:
        self._waiting.append(told)
        self._wake.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            await self.drain()

    async def drain(self) -> None:
        """Write what has been told so far."""
        while self._waiting:
            told = self._waiting.popleft()
            try:
                await self._write(self._event(told))
            except DrakitError as error:
                log.warning("event %s about %s is lost: %s", told.reason, told.involved["name"], error)

    async def _write(self, event: dict[str, Any]) -> None:
        metadata = event["metadata"]
        try:
            await self._client.create(event)
        except AlreadyExists:
            # The agent may write events and not read them: the answer to a patch tells what the count was.
            change = {"lastTimestamp": event["lastTimestamp"]}
            found = await self._client.patch_named(EVENTS, metadata["name"], change, namespace=metadata["namespace"])
            await self._client.patch(found, {"count": found.view.count + 1})

    def _event(self, told: _Told) -> dict[str, Any]:
        now = format_time(self._clock.now())
        parts = (told.involved["uid"], told.involved.get("fieldPath", ""), told.type, told.reason, told.message)
        mark = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:_MARK_LENGTH]
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{told.involved['name'][:_LONGEST_STEM].rstrip('-.')}.{mark}",
                "namespace": told.involved.get("namespace", "default"),
            },
            "involvedObject": told.involved,
            "reason": told.reason,
            "message": told.message[:1024],
            "type": told.type,
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": {"component": COMPONENT, "host": self._node},
            "reportingComponent": COMPONENT,
            "reportingInstance": self._node,
        }
