"""Counters and histograms that one thread tells, and that cost little to tell.

In:  what happened, from the thread of the event loop.
Out: the same families in a registry as prometheus_client makes, added up when they are read.

prometheus_client takes two locks and walks the buckets for each observation, which takes 0.9 µs. These take
0.15 µs, and a pod has forty on its way. They are only for what is told at every request and every attempt.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Generic, TypeVar

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import INF, floatToGoString

S = TypeVar("S")


class Tally:
    """One number that grows."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def inc(self) -> None:
        self.value += 1


class Distribution:
    """How many values fell between which bounds, and their sum."""

    __slots__ = ("_bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        # A bound belongs to what is below it.
        self.counts[bisect_left(self._bounds, value)] += 1
        self.sum += value


class _Family(Collector, Generic[S]):
    """The series of one name. Invariant: a combination of labels has one series, for ever."""

    def __init__(self, name: str, text: str, labels: Sequence[str], registry: CollectorRegistry) -> None:
        self._name = name
        self._text = text
        self._labels = tuple(labels)
        self._series: dict[tuple[str, ...], S] = {}
        if not self._labels:
            self.labels()  # shown as zero before anything happened
        registry.register(self)

    def labels(self, *values: str) -> S:
        """The series of these values. Whoever tells often keeps it."""
        found = self._series.get(values)
        if found is None:
            if len(values) != len(self._labels):
                raise ValueError(f"{self._name} has the labels {self._labels}, not {len(values)} of them")
            found = self._series[values] = self._new()
        return found

    @abstractmethod
    def _new(self) -> S: ...

    def describe(self) -> Iterable[Metric]:
        yield self._empty()

    def collect(self) -> Iterator[Metric]:
        family = self._empty()
        for values, series in self._series.items():
            self._add(family, tuple(map(str, values)), series)
        yield family

    @abstractmethod
    def _empty(self) -> Metric: ...

    @abstractmethod
    def _add(self, family: Metric, labels: Sequence[str], series: S) -> None: ...


class Tallies(_Family[Tally]):
    """A counter, by labels."""

    def _new(self) -> Tally:
        return Tally()

    def _empty(self) -> CounterMetricFamily:
        return CounterMetricFamily(self._name, self._text, labels=self._labels)

    def _add(self, family: Metric, labels: Sequence[str], series: Tally) -> None:
        if isinstance(family, CounterMetricFamily):
            family.add_metric(labels, series.value)


class Distributions(_Family[Distribution]):
    """A histogram, by labels."""

    def __init__(
        self, name: str, text: str, labels: Sequence[str], registry: CollectorRegistry, *, buckets: Sequence[float]
    ) -> None:
        self._buckets = tuple(buckets)
        super().__init__(name, text, labels, registry)

    def _new(self) -> Distribution:
        return Distribution(self._buckets)

    def _empty(self) -> HistogramMetricFamily:
        return HistogramMetricFamily(self._name, self._text, labels=self._labels)

    def _add(self, family: Metric, labels: Sequence[str], series: Distribution) -> None:
        if isinstance(family, HistogramMetricFamily):
            names = [floatToGoString(bound) for bound in (*self._buckets, INF)]  # type: ignore[no-untyped-call]
            family.add_metric(labels, list(zip(names, accumulate(series.counts), strict=True)), series.sum)
