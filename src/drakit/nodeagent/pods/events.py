"""Events about pods: what `kubectl describe` shows.

In:  a pod, a reason, a message, the container it is about.
Out: Events in the pod's namespace, written beside the work that tells them. The same thing again raises the count, many
     similar ones become one, and of a pod that will not stop less is told.

An event that cannot be written is logged; it never holds up a pod.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass
from typing import Any

from drakit.api.text.times import format_time
from drakit.base.clock import Clock
from drakit.base.errors import DrakitError
from drakit.client import Client, V
from drakit.client.correlation import EventCorrelator
from drakit.client.events import NORMAL as NORMAL
from drakit.client.events import WARNING as WARNING
from drakit.client.events import event_name, write_event
from drakit.nodeagent.runtimes.contract import PodIdentity

log = logging.getLogger("drakit.nodeagent")

COMPONENT = "kubelet"
"""Tools look for the kubelet's events by this name."""
_MOST_WAITING = 1000
_LONGEST_MESSAGE = 1024


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
        self._correlator = EventCorrelator(clock)
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
        self._tell(involved, type_, reason, message)

    def about_node(self, type_: str, reason: str, message: str) -> None:
        involved = {"kind": "Node", "apiVersion": "v1", "name": self._node, "uid": self._node}
        self._tell(involved, type_, reason, message)

    def _tell(self, involved: dict[str, str], type_: str, reason: str, message: str) -> None:
        told = self._correlator.message(involved, type_, reason, message[:_LONGEST_MESSAGE])
        if told is None:
            log.log(V[2], "event %s about %s is one of too many: %s", reason, involved["name"], message)
            return
        self._waiting.append(_Told(involved, type_, reason, told[:_LONGEST_MESSAGE]))
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
                await write_event(self._client, self._event(told))
            except DrakitError as error:
                log.warning("event %s about %s is lost: %s", told.reason, told.involved["name"], error)

    def _event(self, told: _Told) -> dict[str, Any]:
        now = format_time(self._clock.now())
        involved = told.involved
        parts = (involved["uid"], involved.get("fieldPath", ""), told.type, told.reason, told.message)
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": event_name(involved["name"], *parts),
                "namespace": involved.get("namespace", "default"),
            },
            "involvedObject": involved,
            "reason": told.reason,
            "message": told.message,
            "type": told.type,
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": {"component": COMPONENT, "host": self._node},
            "reportingComponent": COMPONENT,
            "reportingInstance": self._node,
        }
