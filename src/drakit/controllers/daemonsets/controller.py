"""Daemon sets: a pod on every node that fits, replaced node by node when the template changes.

In:  daemon sets, nodes, pods, controller revisions.
Out: pods made and deleted, revisions kept, the status.

What is missing by the cache is counted again at the server before a pod is made: the cache may not have seen what this
process, or the one before it, made last.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from drakit.api import Node, Pod
from drakit.api.objects.partial import Partial
from drakit.base.errors import DrakitError, Retryable
from drakit.base.labels import from_struct
from drakit.client import CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS, Key, V, key_of
from drakit.client.events import NORMAL, WARNING
from drakit.controllers.context import ControllerContext
from drakit.controllers.daemonsets.nodes import (
    HASH,
    DaemonPlacement,
    OnePod,
    OneSet,
    node_of,
    owner_of,
    placement,
    pod_for,
)
from drakit.controllers.daemonsets.revisions import Revisions
from drakit.controllers.daemonsets.updates import Steps, fill, is_current, is_going, is_surging, roll
from drakit.controllers.replicasets.selection import available_in, ready_since
from drakit.informers import Informer, Result, by_controller

log = logging.getLogger("drakit.controllers")

NAME = "daemonset"
COMPONENT = "daemon-set-controller"
_FAILED_PAUSE = 1.0
"""Seconds between the end of a failed pod and its successor, doubled each time."""
_FAILED_PAUSE_MAX = 900.0


class DaemonSetController:
    def __init__(self, setting: ControllerContext, *, workers: int = 2) -> None:
        self._client = setting.client_of(COMPONENT)
        self._clock = setting.clock
        self._recorder = setting.recorder(self._client, COMPONENT)
        self._sets: Informer[OneSet] = setting.informers.of(DAEMON_SETS)
        self._nodes: Informer[Partial[Node]] = setting.informers.of(NODES)
        self._pods: Informer[OnePod] = setting.informers.of(PODS)
        self._pods.add_index("controller", by_controller)
        revisions = setting.informers.of(CONTROLLER_REVISIONS)
        self._revisions = Revisions(self._client, revisions)
        self.loop = setting.loop(NAME, self.reconcile, workers=workers)
        self.loops = (self.loop,)
        self._failures: dict[tuple[str, str], tuple[int, float]] = {}
        """By daemon set and node: how often its pod failed, and when (monotonic) the next may come."""
        self._sets.enqueue(self.loop.queue.add)
        self._pods.enqueue(self.loop.queue.add, self._sets_of)
        self._nodes.enqueue(self.loop.queue.add, lambda _: [key_of(each) for each in self._sets.cache.all()])

    def _sets_of(self, pod: OnePod) -> list[Key]:
        metadata = pod.view.metadata
        owner = metadata.controller
        if owner is not None:
            return [Key(metadata.namespace, owner.name)] if owner.kind == "DaemonSet" else []
        return [key_of(each) for each in self._sets.cache.all(metadata.namespace) if _selects(each, pod)]

    async def reconcile(self, key: Key) -> Result:
        daemon_set = self._sets.cache.get(key)
        if daemon_set is None or daemon_set.view.spec.selector is None:
            return Result.done()
        placements = {node.view.metadata.name: placement(daemon_set, node) for node in self._nodes.cache.all()}
        wait = 0.0
        if daemon_set.view.metadata.deletion_timestamp is None:
            hashed = await self._revisions.current(daemon_set)
            wait = await self._step(daemon_set, placements, hashed)
            pods = self._cached(daemon_set)
            await self._revisions.clean_up(daemon_set, {hashed, *(p.view.metadata.labels.get(HASH, "") for p in pods)})
            wait = _sooner(wait, await self._tell(daemon_set, placements, pods, hashed))
        return Result.after(wait) if wait else Result.done()

    def _cached(self, daemon_set: OneSet) -> list[OnePod]:
        return self._pods.cache.by("controller", daemon_set.view.metadata.uid)

    async def _step(self, daemon_set: OneSet, placements: Mapping[str, DaemonPlacement], hashed: str) -> float:
        """Make and delete pods; the seconds until a failed pod may have its successor, else zero."""
        desired = sum(place.run for place in placements.values())
        steps = self._plan(daemon_set, placements, self._cached(daemon_set), hashed, desired)
        if not (steps.make or steps.delete) and not self._orphans(daemon_set):
            return 0.0
        await self._adopt(daemon_set)
        listed = await self._client.list(PODS, namespace=_space(daemon_set))
        pods = [pod for pod in listed if daemon_set.view.metadata.uid in by_controller(pod)]
        steps = self._plan(daemon_set, placements, pods, hashed, desired)
        for pod in steps.delete:
            if pod in steps.failed:
                await self._failed(daemon_set, pod)
            await self._client.delete_object(pod)
            await self._say(daemon_set, "SuccessfulDelete", f"Deleted pod: {pod.view.metadata.name}", NORMAL)
        return await self._make(daemon_set, steps.make, hashed)

    def _plan(
        self,
        daemon_set: OneSet,
        placements: Mapping[str, DaemonPlacement],
        pods: Iterable[OnePod],
        hashed: str,
        desired: int,
    ) -> Steps:
        by_node = defaultdict(list)
        for pod in pods:
            by_node[node_of(pod)].append(pod)
        steps = fill(placements, by_node, surging=is_surging(daemon_set, desired))
        if steps.make or steps.delete or daemon_set.view.spec.update_strategy.type == "OnDelete":
            return steps
        wanted = {node: here for node, here in by_node.items() if (place := placements.get(node)) and place.run}
        return roll(daemon_set, wanted, hashed, desired, lambda pod: self._available(daemon_set, pod))

    def _available(self, daemon_set: OneSet, pod: OnePod) -> bool:
        return available_in(pod, daemon_set.view.spec.min_ready_seconds, self._clock.now()) == 0

    def _orphans(self, daemon_set: OneSet) -> list[OnePod]:
        return [
            pod
            for pod in self._pods.cache.all(_space(daemon_set))
            if pod.view.metadata.controller is None and _selects(daemon_set, pod) and not is_going(pod)
        ]

    async def _adopt(self, daemon_set: OneSet) -> None:
        for pod in self._orphans(daemon_set):
            owners = [*(pod.document["metadata"].get("ownerReferences") or ()), owner_of(daemon_set)]
            await self._client.patch(pod, {"metadata": {"ownerReferences": owners}}, versioned=True)

    async def _failed(self, daemon_set: OneSet, pod: OnePod) -> None:
        node, name = node_of(pod), pod.view.metadata.name
        key = (daemon_set.view.metadata.uid, node)
        times = self._failures.get(key, (0, 0.0))[0] + 1
        pause = min(_FAILED_PAUSE * 2 ** (times - 1), _FAILED_PAUSE_MAX)
        self._failures[key] = (times, self._clock.monotonic() + pause)
        done = pod.view.status.phase == "Succeeded"
        reason = "SucceededDaemonPod" if done else "FailedDaemonPod"
        what = "succeeded" if done else "failed"
        message = f"Found {what} daemon pod {_space(daemon_set)}/{name} on node {node}, will try to delete it"
        await self._say(daemon_set, reason, message, NORMAL if done else WARNING)

    async def _make(self, daemon_set: OneSet, nodes: Iterable[str], hashed: str) -> float:
        wait = 0.0
        for node in nodes:
            times, due = self._failures.get((daemon_set.view.metadata.uid, node), (0, 0.0))
            left = due - self._clock.monotonic()
            if times and left > 0:
                wait = _sooner(wait, left)
                continue
            try:
                made = await self._client.create(Partial.of(Pod, pod_for(daemon_set, node, hashed)))
            except Retryable:
                raise
            except DrakitError as error:
                await self._say(daemon_set, "FailedCreate", f"Error creating: {error}", WARNING)
                raise
            name = made.view.metadata.name
            log.log(V[2], "daemon set %s: made pod %s for node %s", daemon_set.view.metadata.name, name, node)
            await self._say(daemon_set, "SuccessfulCreate", f"Created pod: {name}", NORMAL)
        return wait

    async def _tell(
        self, daemon_set: OneSet, placements: Mapping[str, DaemonPlacement], pods: Iterable[OnePod], hashed: str
    ) -> float:
        """Write the status if it has changed; the seconds until it changes without anything happening, else zero."""
        now, seconds = self._clock.now(), daemon_set.view.spec.min_ready_seconds
        by_node: dict[str, OnePod] = {}
        for pod in pods:
            if not pod.view.is_terminal and pod.view.spec.node_name:
                by_node.setdefault(pod.view.spec.node_name, pod)
        wanted = {node for node, place in placements.items() if place.run}
        here = [pod for node, pod in by_node.items() if node in wanted]
        waits = [available_in(pod, seconds, now) for pod in here]
        available = sum(wait == 0 for wait in waits)
        status: dict[str, Any] = {
            "desiredNumberScheduled": len(wanted),
            "currentNumberScheduled": len(here),
            "numberMisscheduled": len(by_node) - len(here),
            "numberReady": sum(ready_since(pod) is not None for pod in here),
            "updatedNumberScheduled": sum(is_current(pod, hashed) for pod in here),
            "numberAvailable": available,
            "numberUnavailable": len(wanted) - available,
            "observedGeneration": daemon_set.view.metadata.generation,
        }
        before = daemon_set.document.get("status") or {}
        if any((before.get(name) or 0) != value for name, value in status.items()):
            document = {**daemon_set.document, "status": {**before, **status}}
            await self._client.update(document, subresource="status")
        return min((wait for wait in waits if wait), default=0.0)

    async def _say(self, daemon_set: OneSet, reason: str, message: str, type_: str) -> None:
        await self._recorder.tell("DaemonSet", "apps/v1", daemon_set, reason, message, type_=type_)


def _space(daemon_set: OneSet) -> str:
    return daemon_set.view.metadata.namespace


def _selects(daemon_set: OneSet, pod: OnePod) -> bool:
    selector = daemon_set.view.spec.selector
    return selector is not None and from_struct(selector).matches(pod.view.metadata.labels)


def _sooner(one: float, other: float) -> float:
    return min(one, other) if one and other else one or other
