"""Counters and histograms of one thread show what those of prometheus_client show."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import Sample

from drakit.base.counts import Distributions, Tallies

BUCKETS = (0.1, 1.0, 5.0)
VALUES = st.sampled_from((0.0, 0.05, 0.1, 0.10001, 1.0, 4.0, 5.0, 7.0)) | st.floats(0, 10)


def shown(registry: CollectorRegistry) -> list[Sample]:
    samples = [sample for family in registry.collect() for sample in family.samples]
    return [sample for sample in samples if not sample.name.endswith("_created")]


@given(st.lists(st.tuples(st.sampled_from("ab"), VALUES)))
def test_a_histogram_has_the_samples_of_prometheus_client(told: Sequence[tuple[str, float]]) -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    quick = Distributions("wait_seconds", "How long.", ("name",), ours, buckets=BUCKETS)
    plain = Histogram("wait_seconds", "How long.", ("name",), registry=theirs, buckets=BUCKETS)
    for name, value in told:
        quick.labels(name).observe(value)
        plain.labels(name).observe(value)
    assert shown(ours) == shown(theirs)


@given(st.lists(st.sampled_from("ab")))
def test_a_counter_has_the_samples_of_prometheus_client(told: Sequence[str]) -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    quick = Tallies("requests_total", "How many.", ("name",), ours)
    plain = Counter("requests_total", "How many.", ("name",), registry=theirs)
    for name in told:
        quick.labels(name).inc()
        plain.labels(name).inc()
    assert shown(ours) == shown(theirs)


def test_what_has_no_labels_is_shown_before_anything_happened() -> None:
    registry = CollectorRegistry()
    Tallies("requests_total", "How many.", (), registry)
    Distributions("wait_seconds", "How long.", (), registry, buckets=BUCKETS)
    assert registry.get_sample_value("requests_total") == 0
    assert registry.get_sample_value("wait_seconds_count") == 0


def test_a_name_is_registered_once_and_labels_are_counted() -> None:
    registry = CollectorRegistry()
    family = Tallies("requests_total", "How many.", ("name",), registry)
    with pytest.raises(ValueError, match="Duplicated"):
        Counter("requests_total", "How many.", ("name",), registry=registry)
    with pytest.raises(ValueError, match="has the labels"):
        family.labels("a", "b")
