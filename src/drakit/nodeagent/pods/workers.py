"""A worker for every pod of the node, as long as there is something to do for it.

In:  the pods that are bound to this node; what the runtime still has of others; claims that were never let go.
Out: workers, woken when something of theirs has changed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from drakit.api import Partial, Pod
from drakit.nodeagent.pods.phases import TERMINAL
from drakit.nodeagent.pods.services import PodServices
from drakit.nodeagent.pods.worker import PodWorker, identity_of
from drakit.nodeagent.runtimes.contract import PodIdentity

log = logging.getLogger("drakit.nodeagent")

_OTHERS_STATUS = ("resourceClaimStatuses", "extendedResourceClaimStatus", "nodeAllocatableResourceClaimStatuses")


class PodWorkers:
    """Invariant: one worker per uid."""

    def __init__(self, services: PodServices) -> None:
        self._services = services
        self._workers: dict[str, PodWorker] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    # Words from outside

    def on_pod(self, old: Partial[Pod] | None, new: Partial[Pod] | None) -> None:
        """A change on the server; another uid under the same name is another pod."""
        if old is not None and (new is None or new.view.metadata.uid != old.view.metadata.uid):
            self._lose(old)
        if new is None:
            return
        worker = self._workers.get(new.view.metadata.uid)
        if worker is None:
            worker = self._begin(identity_of(new))
            worker.first(new, ended=new.view.status.phase in TERMINAL)
        elif worker.pod is None or matters(worker.pod.document, new.document):
            worker.update(new)
        else:
            worker.pod = new

    def adopt(self, pods: Iterable[PodIdentity]) -> None:
        """End what is left of pods that the server does not have any more."""
        for pod in pods:
            if pod.uid not in self._workers:
                self._begin(pod).lose()

    def wake(self, uid: str) -> None:
        if (worker := self._workers.get(uid)) is not None:
            worker.wake()

    def wake_those(self, condition: Callable[[PodWorker], bool]) -> None:
        for worker in self._workers.values():
            if condition(worker):
                worker.wake()

    # What is there

    def all(self) -> list[PodWorker]:
        return list(self._workers.values())

    def find(self, uid: str) -> PodWorker | None:
        return self._workers.get(uid)

    def active(self) -> list[Partial[Pod]]:
        """Pods that take resources of the node."""
        return [each.pod for each in self._workers.values() if each.pod is not None and not each.over]

    @property
    def is_retrying(self) -> bool:
        return any(each.is_retrying for each in self._workers.values())

    async def stop(self) -> None:
        """Leave pods as they are: the next agent goes on with them."""
        tasks, self._tasks, self._workers = list(self._tasks.values()), {}, {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, pod: PodIdentity) -> PodWorker:
        worker = self._workers[pod.uid] = PodWorker(pod, self._services)
        task = asyncio.create_task(worker.run(), name=f"pod {pod.namespace}/{pod.name}")
        task.add_done_callback(lambda done: self._ended(pod.uid, done))
        self._tasks[pod.uid] = task
        return worker

    def _lose(self, pod: Partial[Pod]) -> None:
        if (worker := self._workers.get(pod.view.metadata.uid)) is not None:
            worker.pod = pod
            worker.lose()

    def _ended(self, uid: str, task: asyncio.Task[None]) -> None:
        if self._tasks.get(uid) is task:
            del self._tasks[uid], self._workers[uid]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("the worker of pod %s has failed: %r", uid, error, exc_info=error)


def matters(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether a pod has changed in what the agent does not write itself."""
    return _others(old) != _others(new)


def _others(document: Mapping[str, Any]) -> tuple[Any, ...]:
    metadata, status = document["metadata"], document.get("status") or {}
    gates = {each["conditionType"] for each in document["spec"].get("readinessGates") or ()}
    return (
        document["spec"],
        metadata.get("deletionTimestamp"),
        metadata.get("deletionGracePeriodSeconds"),
        metadata.get("labels"),
        metadata.get("annotations"),
        *(status.get(name) for name in _OTHERS_STATUS),
        [each for each in status.get("conditions") or () if each["type"] in gates],
    )
