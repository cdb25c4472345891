from __future__ import annotations

import csv
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from prometheus_client import CollectorRegistry, generate_latest

from drakit.api import Pod
from drakit.base.clock import FakeClock
from drakit.dashboard.history import ClusterHistory
from drakit.dashboard.metrics import HistoryCollector
from tests.builders.explained import objects_of, running, two_nodes, waiting

ROOT = Path(__file__).parents[2]


def test_a_sample_counts_devices_by_class_and_namespace_and_pods_that_wait() -> None:
    history = ClusterHistory(FakeClock(datetime(2026, 1, 1, tzinfo=UTC)))
    empty = history.sample(objects_of(two_nodes()))
    found = history.sample(objects_of(two_nodes(*running("r", "node-b", "gpu-0"), waiting("w", "c"))))
    assert (empty.allocated, empty.pending, empty.total) == (1, 0, 3)
    assert (found.allocated, found.pending, found.total) == (2, 1, 3)
    assert found.namespaces == {"default": 2}
    assert found.at == 1767225600


def test_latency_is_measured_from_the_moment_a_pod_was_seen_to_wait() -> None:
    clock = FakeClock()
    history = ClusterHistory(clock)
    cluster = objects_of(two_nodes(*running("r", "node-b", "gpu-0")))
    waits, placed = objects_of([waiting("r", "c")]).find(Pod, "r", "default"), cluster.find(Pod, "r", "default")
    history.note_pod(None, waits)
    clock.advance(2.5)
    history.note_pod(waits, placed)
    clock.advance(9.0)
    history.note_pod(placed, placed)
    history.note_pod(placed, None)
    found = history.sample(cluster)
    assert (found.p50, found.p99) == (2.5, 2.5)


def test_csv_has_a_column_for_every_class_and_no_formula() -> None:
    history = ClusterHistory(FakeClock())
    sample = history.sample(objects_of(two_nodes()))
    history.samples.append(msgspec.structs.replace(sample, sizes={"a": 2}, classes={"a": 1}))
    history.samples.append(msgspec.structs.replace(sample, sizes={"b": 3}, classes={}))
    rows = list(csv.reader(history.as_csv().splitlines()))
    assert rows[0][7:11] == ["class a allocated", "class a total", "class b allocated", "class b total"]
    assert [row[7:11] for row in rows[1:]] == [["1", "2", "0", "0"], ["0", "0", "0", "3"]]


def test_the_grafana_dashboard_asks_only_for_metrics_that_there_are() -> None:
    history = ClusterHistory(FakeClock())
    sample = history.sample(objects_of(two_nodes(*running("r", "node-a", "gpu-0"))))
    history.samples.append(msgspec.structs.replace(sample, p50=0.1, p99=0.2))
    registry = CollectorRegistry()
    registry.register(HistoryCollector(history))
    names = {
        line.split("{")[0].split(" ")[0] for line in generate_latest(registry).decode().splitlines() if line[0] != "#"
    }
    board = msgspec.json.decode((ROOT / "deploy" / "grafana" / "drakit.json").read_bytes())
    asked = {target["expr"] for panel in board["panels"] for target in panel["targets"]}
    wanted = {
        word for text in asked for word in text.replace("(", " ").replace("{", " ").split() if word[:7] == "drakit_"
    }
    assert wanted == names
