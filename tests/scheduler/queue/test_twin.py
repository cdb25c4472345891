"""The queue against a naive twin: a list of pods, every one looked at whenever anything happens."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from drakit.base.clock import FakeClock
from drakit.scheduler.framework import (
    SUCCESS,
    Action,
    ClusterEvent,
    EventResource,
    EventScope,
    Hint,
    Interest,
    PluginStatus,
)
from drakit.scheduler.framework.changes import pod_change
from drakit.scheduler.framework.events import EVERYTHING
from drakit.scheduler.queue import QueuedPod
from tests.scheduler.queue.pods import RecordedMetrics, queue, queued_pod

NAMES = st.sampled_from("abc")
PLUGINS = st.sets(st.sampled_from(["Fit", "Claims", "Gate", "Unknown"]), max_size=2)
SELDOM = st.integers(0, 5).map(lambda number: number == 5)
EVENTS = [
    ClusterEvent(EventResource.NODE, Action.ADD),
    ClusterEvent(EventResource.CLAIM, Action.UPDATE),
    ClusterEvent(EventResource.POD_GROUP, Action.ADD),
    ClusterEvent(EventResource.CLASS, Action.DELETE),
    EVERYTHING,
]


def named(pod: Any, _old: Any, new: Any) -> Hint:
    return Hint.QUEUE if pod.metadata.name in new else Hint.SKIP


def in_common(_old: Any, new: Any) -> Any:
    return None if len(new) == 2 else new


BY_NAME = EventScope(lambda pod: [pod.metadata.name, "x"], in_common)
OWN_CLAIMS = ClusterEvent(EventResource.TARGET_POD, Action.UPDATE_POD_GENERATED_CLAIM)
INTERESTS = {
    "Fit": [Interest(EVENTS[0])],
    "Claims": [Interest(EVENTS[1], named, BY_NAME), Interest(OWN_CLAIMS), Interest(EVENTS[0], named)],
    "Gate": [Interest(EVENTS[2], named)],
}
PROFILE = "default-scheduler"


class Twin:
    """One pod as the naive queue knows it."""

    def __init__(self, form: Any, now: float, number: int) -> None:
        self.form = form
        self.seen = form  # by the attempt
        self.part = "outside"
        self.queued_at = now
        self.number = number
        self.refused: set[str] = set()
        self.pending: set[str] = set()
        self.gate: str | None = None
        self.refusals = self.errors = 0
        self.backoff_until = float("-inf")
        self.flush_at = now + 300
        self.happened: list[tuple[ClusterEvent, Any, Any]] = []
        self.deleted = False
        self.handle: QueuedPod | None = None

    @property
    def order(self) -> Any:
        return (-(self.form.view.spec.priority or 0), self.queued_at, self.number)

    @property
    def because(self) -> set[str]:
        return self.refused | self.pending | ({self.gate} if self.gate else set())

    def worth(self, event: ClusterEvent, old: Any, new: Any) -> int:
        """0: no, 1: after backoff, 2: at once."""
        best = 0
        for plugin in {self.gate} if self.part == "gated" else self.because:
            assert plugin is not None
            if event.resource is EventResource.WILDCARD:
                best = max(best, 1)
                continue
            interests = INTERESTS.get(plugin, [Interest(EVERYTHING)])
            for interest in interests:
                hopes = interest.event.matches(event)
                if hopes and (interest.hint is None or interest.hint(self.form.view, old, new)):
                    best = max(best, 2 if plugin in self.pending else 1)
        return best


class QueueAndTwin(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.metrics = RecordedMetrics()
        self.closed_gates: set[str] = set()
        self.queue = queue(
            self.clock, interests=INTERESTS, pre_enqueue=self.gate, metrics=self.metrics, pop_early=False
        )
        self.twins: dict[str, Twin] = {}
        self.numbers = 0

    def gate(self, each: Any) -> PluginStatus:
        shut = each.metadata.name in self.closed_gates
        return PluginStatus.unresolvable("shut").by("Gate") if shut else SUCCESS

    def place(self, twin: Twin, worth: int) -> None:
        if worth and twin.form.view.metadata.name in self.closed_gates:
            twin.gate, worth = "Gate", 0
        elif worth:
            twin.gate = None
        if worth == 0:
            twin.part = "gated" if twin.gate else "unschedulable"
        elif worth == 1 and self.clock.monotonic() < twin.backoff_until:
            twin.part = "backoff"
        else:
            twin.part = "active"

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    @rule(name=NAMES, priority=st.integers(0, 2))
    def add(self, name: str, priority: int) -> None:
        form = queued_pod(name, priority=priority)
        twin = self.twins.get(name)
        if twin is not None:
            self.changed(twin, form)
        else:
            self.twins[name] = twin = Twin(form, self.clock.monotonic(), self.number())
            self.place(twin, 2)
        self.queue.add(form)

    @rule(name=NAMES, priority=st.integers(0, 2), claim=st.sampled_from(["", "one", "two"]))
    def update(self, name: str, priority: int, claim: str) -> None:
        twin = self.twins.get(name)
        if twin is None or twin.deleted:
            return
        status: dict[str, Any] = (
            {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": claim}]} if claim else {}
        )
        form = queued_pod(name, priority=priority, **status)
        old = twin.form
        self.changed(twin, form)
        self.queue.update(old, form)

    def changed(self, twin: Twin, form: Any) -> None:
        old, twin.form = twin.form, form
        event = ClusterEvent(EventResource.TARGET_POD, pod_change(old.view, form.view))
        if twin.part == "in flight":
            twin.deleted = False
            twin.happened.append((event, old.view, form.view))
        elif twin.part == "gated":
            self.place(twin, 1)
        elif twin.part == "unschedulable":
            self.place(twin, twin.worth(event, old.view, form.view))

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        twin = self.twins.get(name)
        if twin is not None and twin.part == "in flight":
            twin.deleted = True
        elif twin is not None:
            del self.twins[name]
        self.queue.delete(f"uid-{name}")

    @rule()
    def pop(self) -> None:
        self.ripen()
        active = [twin for twin in self.twins.values() if twin.part == "active"]
        found = self.queue.pop_now()
        if not active:
            assert found is None
            return
        twin = min(active, key=lambda each: each.order)
        assert found is not None
        assert found.pod is twin.form
        self.take_off(twin, found)

    @rule(names=st.sets(NAMES))
    def take(self, names: set[str]) -> None:
        expected = []
        for name in sorted(names):
            twin = self.twins.get(name)
            if twin is None or twin.part in ("gated", "in flight"):
                continue
            if twin.part == "unschedulable":
                self.place(twin, 2)
            if twin.part != "gated":
                expected.append(twin)
        taken = self.queue.take([f"uid-{name}" for name in sorted(names)])
        assert [each.pod for each in taken] == [twin.form for twin in expected]
        for twin, found in zip(expected, taken, strict=True):
            self.take_off(twin, found)

    def take_off(self, twin: Twin, found: QueuedPod) -> None:
        twin.part, twin.handle, twin.seen = "in flight", found, twin.form
        twin.refused, twin.pending, twin.happened = set(), set(), []

    @precondition(lambda self: any(twin.part == "in flight" for twin in self.twins.values()))
    @rule(data=st.data(), refused=PLUGINS, pending=PLUGINS, error=SELDOM)
    def put_back(self, data: st.DataObject, refused: set[str], pending: set[str], error: bool) -> None:
        name = data.draw(st.sampled_from([name for name, twin in self.twins.items() if twin.part == "in flight"]))
        self.fail(name, refused, pending, error=error)

    @rule(name=NAMES, refused=PLUGINS, pending=PLUGINS)
    def attempt(self, name: str, refused: set[str], pending: set[str]) -> None:
        """A whole attempt, with nothing happening meanwhile."""
        self.closed_gates -= {name}
        if name not in self.twins:
            self.add(name, 0)
        self.take({name})
        if self.twins[name].part == "in flight":
            self.fail(name, refused, pending, error=False)

    def fail(self, name: str, refused: set[str], pending: set[str], *, error: bool) -> None:
        twin = self.twins[name]
        handle = twin.handle
        assert handle is not None
        assert handle.pod is twin.seen
        self.queue.put_back(handle, unschedulable=refused, pending=pending, error=error)
        if twin.deleted:
            del self.twins[name]
            return
        failed = error or not (refused | pending)
        twin.refused, twin.pending = (set(), set()) if failed else (refused, pending)
        twin.part = "outside"
        worth = 1 if failed else max((twin.worth(*each) for each in twin.happened), default=0)
        twin.errors = twin.errors + 1 if failed else 0
        twin.refusals += not failed
        twin.queued_at, twin.number = self.clock.monotonic(), self.number()
        twin.backoff_until = twin.queued_at + min(10, 2 ** ((twin.errors or twin.refusals) - 1))
        twin.flush_at = twin.queued_at + 300
        self.place(twin, worth)

    @precondition(lambda self: any(twin.part == "in flight" for twin in self.twins.values()))
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from([name for name, twin in self.twins.items() if twin.part == "in flight"]))
        del self.twins[name]
        self.queue.done(f"uid-{name}")

    @rule(event=st.sampled_from(EVENTS), names=st.sets(NAMES))
    def move(self, event: ClusterEvent, names: set[str]) -> None:
        for twin in self.twins.values():
            if twin.part == "in flight":
                twin.happened.append((event, None, names))
            elif twin.part in ("unschedulable", "gated"):
                worth = twin.worth(event, None, names)
                if worth:
                    self.place(twin, worth)
        self.queue.move(event, None, names)

    @rule(name=NAMES)
    def turn_gate(self, name: str) -> None:
        self.closed_gates ^= {name}

    @rule(seconds=st.sampled_from([0.5, 1, 3, 10, 299, 300]))
    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.ripen()
        for twin in self.twins.values():
            if twin.part in ("unschedulable", "gated") and twin.flush_at <= self.clock.monotonic():
                twin.flush_at = self.clock.monotonic() + 300
                self.place(twin, 1)
        self.queue.flush()

    def ripen(self) -> None:
        for twin in self.twins.values():
            if twin.part == "backoff" and twin.backoff_until <= self.clock.monotonic():
                twin.part = "active"

    @invariant()
    def every_pod_is_where_the_twin_has_it(self) -> None:
        known = {name: twin for name, twin in self.twins.items() if not twin.deleted}
        for name in "abc":
            queued = self.queue.get(f"uid-{name}")
            assert (queued.part if queued else None) == (known[name].part if name in known else None), name
        parts = Counter(twin.part for twin in known.values())
        assert self.queue.pending() == {part: parts[part] for part in self.queue.pending()}
        assert len(self.queue._flights) == sum(twin.part == "in flight" for twin in self.twins.values())

    @invariant()
    def metrics_tell_because_of_whom_pods_wait(self) -> None:
        waiting = [twin for twin in self.twins.values() if twin.part != "in flight"]
        expected = Counter((plugin, PROFILE) for twin in waiting for plugin in twin.because)
        assert +self.metrics.refused == expected
        assert all(count >= 0 for count in self.metrics.refused.values())

    @invariant()
    def nothing_is_kept_for_nobody(self) -> None:
        if len(self.queue._flights) == 0:
            assert self.queue._flights.events == 0


TestQueueAndTwin = QueueAndTwin.TestCase
TestQueueAndTwin.settings = settings(max_examples=200, stateful_step_count=60, deadline=None)
