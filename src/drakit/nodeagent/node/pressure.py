"""The node is short of memory or disk: it says so, and ends pods until there is enough again.

In:  thresholds, what the machine has left, what pods take.
Out: conditions of the node; one pod at a time is evicted, in the kubelet's order and words.

First go pods that take more than they asked for, among those the least important, among those the one that is furthest
above what it asked for. With drakit's own switch, what a pod's claims give it counts as asked for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from drakit.api import Pod, pod_requests
from drakit.base.clock import Clock
from drakit.base.errors import DrakitError
from drakit.base.quantity import Quantity
from drakit.base.taints import Taint, tolerates
from drakit.nodeagent.metrics import AgentMetrics
from drakit.nodeagent.node.object import NodeState
from drakit.nodeagent.node.thresholds import MEMORY_PRESSURE, Observation, Threshold, binary, met
from drakit.nodeagent.node.usage import MachineReader, PodUsage, pod_usages
from drakit.nodeagent.pods.admission import is_critical
from drakit.nodeagent.pods.events import NORMAL, WARNING, EventLog
from drakit.nodeagent.pods.services import NodeEviction, Rejection
from drakit.nodeagent.pods.worker import PodWorker
from drakit.nodeagent.runtimes.contract import Runtime

log = logging.getLogger("drakit.nodeagent")

LOOK_SECONDS = 10.0
TRANSITION_SECONDS = 300.0
"""A condition that was there stays for so long after it was last seen, so that it does not flap."""
EVICTED = "Evicted"
_GRACE = 1.0
_PATIENCE = 30.0
"""How long the end of one pod is waited for before the next is chosen."""
_MEMORY_TAINT = Taint(key="node.kubernetes.io/memory-pressure", effect="NoSchedule")
_EVENTS = {
    ("MemoryPressure", True): "NodeHasInsufficientMemory",
    ("MemoryPressure", False): "NodeHasSufficientMemory",
    ("DiskPressure", True): "NodeHasDiskPressure",
    ("DiskPressure", False): "NodeHasNoDiskPressure",
}


@dataclass(frozen=True, slots=True)
class PressureParts:
    """What the watch over the node's resources needs of the agent."""

    state: NodeState
    changed: Callable[[], None]
    """Have the node's status written."""
    workers: Callable[[], Sequence[PodWorker]]
    runtime: Runtime
    events: EventLog
    metrics: AgentMetrics
    pods_directory: Path
    with_claims: bool = False


class NodePressure:
    """`run` looks every 10 s; `refusal` is for pods that want in meanwhile."""

    def __init__(
        self, thresholds: tuple[Threshold, ...], reader: MachineReader, clock: Clock, parts: PressureParts
    ) -> None:
        self._thresholds = thresholds
        self._reader = reader
        self._clock = clock
        self._parts = parts
        self._last_seen: dict[str, float] = {}
        self._ending: tuple[PodWorker, float] | None = None

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            try:
                await self.look()
            except (DrakitError, OSError) as error:
                log.warning("the node's resources were not looked at: %s", error)

    async def look(self) -> None:
        """Compare what is left with the thresholds, tell of it, and end a pod if need be."""
        observed = self._reader.read()
        short = met(self._thresholds, observed)
        self._tell({each.signal.condition for each in short})
        if not short or self._waits_for_an_end():
            return
        first = short[0]
        self._parts.events.about_node(WARNING, "EvictionThresholdMet", f"Attempting to reclaim {first.signal.resource}")
        usages = await pod_usages(self._parts.runtime, self._parts.pods_directory, self._reader)
        self._evict_first(first, observed[first.signal.name], usages)

    def refusal(self, pod: Pod, *, best_effort: bool) -> Rejection | None:
        """Why a pod is not admitted. Memory pressure alone refuses only BestEffort pods that do not tolerate it."""
        pressures = self._parts.state.pressures
        if not pressures or is_critical(pod):
            return None
        if pressures == {MEMORY_PRESSURE} and (not best_effort or _tolerates_memory_pressure(pod)):
            return None
        return Rejection(EVICTED, f"The node had condition: [{' '.join(sorted(pressures))}]. ")

    # Conditions

    def _tell(self, seen: set[str]) -> None:
        now, state = self._clock.monotonic(), self._parts.state
        self._last_seen.update(dict.fromkeys(seen, now))
        lasting = {name for name, at in self._last_seen.items() if name in seen or now - at < TRANSITION_SECONDS}
        for name in sorted(lasting ^ state.pressures):
            event = _EVENTS[name, name in lasting]
            self._parts.events.about_node(NORMAL, event, f"Node {state.name} status is now: {event}")
        if lasting != state.pressures:
            state.pressures = frozenset(lasting)
            self._parts.changed()

    # Eviction

    def _waits_for_an_end(self) -> bool:
        if self._ending is None:
            return False
        worker, since = self._ending
        return not worker.over and self._clock.monotonic() - since < _PATIENCE

    def _evict_first(self, threshold: Threshold, observed: Observation, usages: Mapping[str, PodUsage]) -> None:
        resource = threshold.signal.resource
        running = [each for each in self._parts.workers() if each.pod is not None and not each.is_ending]
        pods = {each.identity.uid: each.pod.view for each in running if each.pod is not None}
        ranked = rank(list(pods.values()), usages, resource, with_claims=self._parts.with_claims)
        for pod in ranked:
            if is_critical(pod):
                continue
            message = eviction_message(threshold, observed, pod, usages.get(pod.metadata.uid, PodUsage()))
            worker = next(each for each in running if each.identity.uid == pod.metadata.uid)
            self._parts.events.about_pod(worker.identity, WARNING, EVICTED, message)
            self._parts.metrics.evicted(threshold.signal.name)
            worker.evict(NodeEviction(EVICTED, message, grace=_GRACE, disruption=message))
            self._ending = (worker, self._clock.monotonic())
            return
        log.warning("the node is short of %s, and there is no pod that could be ended", resource)


def rank(pods: Sequence[Pod], usages: Mapping[str, PodUsage], resource: str, *, with_claims: bool = False) -> list[Pod]:
    """The pods in the order of eviction."""

    def key(pod: Pod) -> tuple[bool, int, int]:
        asked = pod_requests(pod, claims=with_claims).get(resource)
        used = usages.get(pod.metadata.uid, PodUsage()).total(resource)
        over = used - (asked.value if asked is not None else 0)
        return over <= 0, pod.spec.priority or 0, -over

    return sorted(pods, key=key)


def eviction_message(threshold: Threshold, observed: Observation, pod: Pod, usage: PodUsage) -> str:
    """With the blank at its end, as a kubelet writes it."""
    resource = threshold.signal.resource
    quantity, available = binary(threshold.of(observed.capacity)), binary(observed.available)
    text = f"The node was low on resource: {resource}. Threshold quantity: {quantity}, available: {available}. "
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        measured = usage.containers.get(container.name)
        asked = container.resources.requests.get(resource, Quantity.of(0))
        if measured is not None and measured.of(resource) > asked.value:
            used = binary(measured.of(resource))
            text += (
                f"Container {container.name} was using {used}, request is {asked}, "
                f"has larger consumption of {resource}. "
            )
    return text


def _tolerates_memory_pressure(pod: Pod) -> bool:
    return any(tolerates(each, _MEMORY_TAINT) for each in pod.spec.tolerations)
