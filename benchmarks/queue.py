"""The scheduling queue: what an operation costs with ten thousand pods in it.

`python -m benchmarks.queueing` prints the table and keeps it in `benchmarks/results/queueing.md`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from benchmarks.report import publish
from drakit.api.objects.partial import Partial
from drakit.api.objects.pods import Pod
from drakit.base.clock import FakeClock
from drakit.scheduler.framework import Action, ClusterEvent, EventResource, EventScope, Hint, Interest
from drakit.scheduler.queue import SchedulingQueue

PODS = 10_000
NODE = ClusterEvent(EventResource.NODE, Action.ADD)
CLASS = ClusterEvent(EventResource.CLASS, Action.ADD)
CLAIM = ClusterEvent(EventResource.CLAIM, Action.ADD)
SLICE = ClusterEvent(EventResource.SLICE, Action.ADD)


def no(_pod: Pod, _old: Any, _new: Any) -> Hint:
    return Hint.SKIP


BY_NAME = EventScope(lambda pod: [pod.metadata.name], lambda _, new: [new])
INTERESTS = {
    "Fit": [Interest(NODE)],
    "Claims": [Interest(CLASS, no), Interest(SLICE), Interest(CLAIM, no, BY_NAME)],
}


def pods() -> list[Partial[Pod]]:
    return [
        Partial.of(Pod, {"metadata": {"name": f"p-{number}", "uid": f"u-{number}"}, "spec": {"priority": number % 10}})
        for number in range(PODS)
    ]


def a_queue(some: list[Partial[Pod]], *, refused: bool = False) -> SchedulingQueue:
    queue = SchedulingQueue(FakeClock(), interests=INTERESTS, pre_enqueue={}, pop_early=False)
    for pod in some:
        queue.add(pod)
    while refused and (queued := queue.pop_now()) is not None:
        queue.put_back(queued, unschedulable=["Claims"])
    return queue


def seconds_of(work: Callable[[SchedulingQueue], None], make: Callable[[], SchedulingQueue], rounds: int = 3) -> float:
    best = float("inf")
    for _ in range(rounds):
        queue = make()
        begun = time.perf_counter()
        work(queue)
        best = min(best, time.perf_counter() - begun)
    return best


def pop_and_bind(queue: SchedulingQueue) -> None:
    while (queued := queue.pop_now()) is not None:
        queue.done(queued.uid)


def pop_and_refuse(queue: SchedulingQueue) -> None:
    while (queued := queue.pop_now()) is not None:
        queue.put_back(queued, unschedulable=["Claims"])


def main() -> None:
    some = pods()

    def fill(queue: SchedulingQueue) -> None:
        for pod in some:
            queue.add(pod)

    def empty(queue: SchedulingQueue) -> None:
        for pod in some:
            queue.delete(pod.view.metadata.uid)

    def waiting() -> SchedulingQueue:
        return a_queue(some, refused=True)

    def event(happened: ClusterEvent) -> float:
        return seconds_of(lambda queue: queue.move(happened, None, "p-7"), waiting)

    each = [
        ("add", seconds_of(fill, lambda: a_queue([]))),
        ("pop and done", seconds_of(pop_and_bind, lambda: a_queue(some))),
        ("pop and put back, refused", seconds_of(pop_and_refuse, lambda: a_queue(some))),
        ("delete one that waits", seconds_of(empty, waiting)),
    ]
    events = [
        ("an event of no plugin that refused any", event(NODE)),
        ("an event of which the scope is one pod", event(CLAIM)),
        ("an event of which the hint says no for each", event(CLASS)),
        ("an event that wakes all", event(SLICE)),
    ]
    rows = [[what, f"{seconds / PODS * 1e6:,.2f} µs"] for what, seconds in each]
    rows += [[what, f"{seconds * 1e3:,.3f} ms"] for what, seconds in events]
    publish("queueing", f"Scheduling queue, {PODS:,} pods", ["operation", "time"], rows)


if __name__ == "__main__":
    main()
