"""The whole exposition of the DRA metrics, after a run like the recorded one.

In:  a recording of `/metrics` alone. Its counts say what the run was: pods, and calls per driver.
Out: families, types, labels, bounds of buckets and counts that differ.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from drakit.nodeagent.metrics import AgentMetrics
from tests.conformance.nodeflows.compare import parse_line

Plain = dict[str, Any]


async def compare_exposition(flow: Plain, root: Path) -> list[str]:
    del root
    lines = [line for step in flow["steps"] for line in step["lines"]]
    registry = CollectorRegistry()
    metrics = AgentMetrics(registry)
    values = [parse_line(line) for line in lines if not line.startswith("#")]
    for name, labels, value in values:
        for _ in range(int(value)) if name.endswith("_count") else ():
            _observe(metrics, name, labels)
    metrics.set_claims_in_use({}, 0)
    ours = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in registry.collect()
        for sample in family.samples
    }
    problems = []
    for name, labels, value in values:
        key = (name, tuple(sorted(labels.items())))
        varies = name.endswith(("_sum", "_bucket"))
        if key not in ours or (not varies and ours[key] != value):
            problems.append(f"{name}{labels}: recorded {value}, ours {ours.get(key)}")
    return problems + list(_types(lines, registry))


def _observe(metrics: AgentMetrics, name: str, labels: Plain) -> None:
    if name.startswith("dra_grpc"):
        metrics.observe_call(labels["driver_name"], labels["method_name"], labels["grpc_status_code"], 0.01)
    else:
        failed = labels["is_error"] == "true"
        metrics.observe_operation(labels["operation_name"], failed=failed, seconds=0.01)


def _types(lines: list[str], registry: CollectorRegistry) -> list[str]:
    ours = {family.name: family.type for family in registry.collect()}
    problems = []
    for line in lines:
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            if ours.get(name) != kind:
                problems.append(f"{name} is a {kind}, ours {ours.get(name)}")
    return problems
