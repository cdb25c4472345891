"""Metrics over time: devices and how many are allocated, pending pods, scheduling latencies, fragmentation.

In:  a live view of the whole cluster, looked at every few seconds.
Out: samples of a day, in memory; as CSV, and the latest as metrics.
"""

from __future__ import annotations

import asyncio
import csv
import io
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import msgspec

from drakit.api import Pod
from drakit.base.clock import Clock
from drakit.dashboard.cells import pending_pods
from drakit.dashboard.live import LiveView
from drakit.explain import ClusterObjects, DeviceRow, DeviceState, device_rows, utilisation

SAMPLE_SECONDS = 15.0
DAY_SECONDS = 86_400.0
_AT_MOST = 0.02
"""The part of a core that sampling may take: a large cluster is looked at less often."""
_WAITS = 500
"""How many of the latest scheduling latencies p50 and p99 are computed from."""


class Sample(msgspec.Struct, frozen=True, rename="camel"):
    """`classes` and `namespaces` have devices that are allocated; `sizes` all devices of each class."""

    at: int
    """Seconds since 1970."""
    total: int
    allocated: int
    pending: int
    p50: float | None
    p99: float | None
    fragmentation: float
    classes: Mapping[str, int]
    sizes: Mapping[str, int]
    namespaces: Mapping[str, int]


class ClusterHistory:
    """Samples of the last day. `follow` takes them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.samples: deque[Sample] = deque(maxlen=int(DAY_SECONDS / SAMPLE_SECONDS))
        self._latencies: deque[float] = deque(maxlen=_WAITS)
        self._waiting: dict[str, float] = {}

    async def follow(self, live: LiveView) -> None:
        """Take samples until cancelled. Pods are followed change by change; devices are read once per sample."""
        live.follow_pods(self.note_pod)
        while True:
            begun = self._clock.monotonic()
            self.samples.append(await asyncio.to_thread(self.sample, await live.cluster()))
            # Of a large cluster a sample takes long: the pause grows with it, to keep to the share of a core.
            taken = self._clock.monotonic() - begun
            await self._clock.sleep(max(SAMPLE_SECONDS, taken / _AT_MOST))

    def note_pod(self, old: Pod | None, new: Pod | None) -> None:
        """Note how long a pod waited for its node: by our own clock if we saw it pending, else by its timestamps."""
        if new is None:
            if old is not None:
                self._waiting.pop(old.metadata.uid, None)
        elif not new.spec.node_name:
            self._waiting.setdefault(new.metadata.uid, self._clock.monotonic())
        elif old is None or not old.spec.node_name:
            since = self._waiting.pop(new.metadata.uid, None)
            waited = self._clock.monotonic() - since if since is not None else _told_wait(new)
            if waited is not None:
                self._latencies.append(waited)

    def sample(self, cluster: ClusterObjects) -> Sample:
        rows = device_rows(cluster)
        use = utilisation(cluster, rows)
        sizes, classes, namespaces = _counted(rows)
        latencies = sorted(self._latencies)
        return Sample(
            at=int(self._clock.now().timestamp()),
            total=use.devices,
            allocated=use.used,
            pending=sum(1 for _ in pending_pods(cluster)),
            p50=_quantile(latencies, 0.5),
            p99=_quantile(latencies, 0.99),
            fragmentation=use.fragmentation,
            classes=classes,
            sizes=sizes,
            namespaces=namespaces,
        )

    def as_csv(self) -> str:
        """A line per sample; a column per class and namespace of any of them."""
        samples = list(self.samples)
        classes = sorted({name for each in samples for name in each.sizes})
        spaces = sorted({name for each in samples for name in each.namespaces})
        written = io.StringIO()
        writer = csv.writer(written, lineterminator="\r\n")
        writer.writerow(_head(classes, spaces))
        for each in samples:
            writer.writerow([_unformulated(cell) for cell in _line(each, classes, spaces)])
        return written.getvalue()


def _head(classes: Sequence[str], spaces: Sequence[str]) -> list[str]:
    plain = ["time", "total", "allocated", "pending", "latency_p50_seconds", "latency_p99_seconds", "fragmentation"]
    by_class = [text for name in classes for text in (f"class {name} allocated", f"class {name} total")]
    return [*plain, *by_class, *(f"namespace {name} allocated" for name in spaces)]


def _line(each: Sample, classes: Sequence[str], spaces: Sequence[str]) -> Iterator[object]:
    yield datetime.fromtimestamp(each.at).astimezone().isoformat()
    yield from (each.total, each.allocated, each.pending, each.p50, each.p99, each.fragmentation)
    for name in classes:
        yield each.classes.get(name, 0)
        yield each.sizes.get(name, 0)
    yield from (each.namespaces.get(name, 0) for name in spaces)


def _unformulated(cell: object) -> object:
    """Quote text that a spreadsheet would run as a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in "=+-@" else cell


def _counted(rows: Sequence[DeviceRow]) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    sizes: Counter[str] = Counter()
    classes: Counter[str] = Counter()
    namespaces: Counter[str] = Counter()
    for row in rows:
        sizes.update(row.classes)
        if row.state in (DeviceState.USED, DeviceState.SHARED):
            classes.update(row.classes)
            namespaces.update({each.namespace for each in row.holders})
    return dict(sizes), dict(classes), dict(namespaces)


def _quantile(ordered: Sequence[float], part: float) -> float | None:
    if not ordered:
        return None
    return round(ordered[min(int(part * len(ordered)), len(ordered) - 1)], 3)


def _told_wait(pod: Pod) -> float | None:
    """The wait by the pod's own timestamps, which have whole seconds."""
    made = pod.metadata.creation_timestamp
    for each in pod.status.conditions:
        if each.type == "PodScheduled" and each.status == "True" and each.last_transition_time and made:
            return max((_time(each.last_transition_time) - _time(made)).total_seconds(), 0.0)
    return None


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
