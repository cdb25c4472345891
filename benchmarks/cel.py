"""Selectors per second: `python -m benchmarks.cel`.

Each expression is evaluated on a bound device beside a Python closure that somebody wrote by hand for it, and against
the time that upstream takes for one evaluation. The target is the stricter of: three times the closure, a thirtieth of
upstream.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks.report import best_of, publish
from drakit.api import Device, from_plain
from drakit.base.quantity import Quantity
from drakit.selectors import BoundDevice, Selector, bind

GPU = "gpu.example.com"
DEVICE = {
    "name": "gpu-0",
    "attributes": {
        "model": {"string": "a100"},
        "numa": {"int": 1},
        "ecc": {"bool": True},
        "driverVersion": {"version": "1.2.3"},
    },
    "capacity": {"memory": {"value": "40Gi"}},
}
_INNER = 20_000
_WANTED = Quantity.parse("40Gi").nanos

Closure = Callable[[BoundDevice], bool]


class Case(NamedTuple):
    name: str
    expression: str
    upstream: float  # microseconds
    closure: Closure


def _by_driver(bound: BoundDevice) -> bool:
    return bool(bound.device["driver"] == "gpu.example.com")


def _by_model_and_memory(bound: BoundDevice) -> bool:
    device = bound.device
    attributes, capacity = device["attributes"]["gpu.example.com"], device["capacity"]["gpu.example.com"]
    return bool(attributes["model"] == "a100" and capacity["memory"].nanos >= _WANTED)


def _by_numa_and_models(bound: BoundDevice) -> bool:
    attributes = bound.device["attributes"]["gpu.example.com"]
    return attributes.get("numa", 0) in {0, 1, 2} and attributes["model"] in {"a100", "h100"}


CASES = (
    Case("driver", f'device.driver == "{GPU}"', 9, _by_driver),
    Case(
        "model and memory",
        f'device.attributes["{GPU}"].model == "a100"'
        f' && device.capacity["{GPU}"].memory.compareTo(quantity("40Gi")) >= 0',
        14,
        _by_model_and_memory,
    ),
    Case(
        "numa and models",
        f'device.attributes["{GPU}"].?numa.orValue(0) in [0,1,2]'
        f' && ["a100","h100"].exists(m, m == device.attributes["{GPU}"].model)',
        25,
        _by_numa_and_models,
    ),
)


def measure(case: Case, bound: BoundDevice) -> tuple[str, ...]:
    """One row: times in nanoseconds, ratios, and whether the stricter target is met."""
    selector = Selector(case.expression)
    assert selector.evaluate(bound).matches
    assert case.closure(bound)
    ours = per_call(selector.evaluate, bound)
    closure = per_call(case.closure, bound)
    counted = best_of(lambda: selector.metered(bound), rounds=5, inner=500)
    compiling = best_of(lambda: Selector(case.expression), rounds=5, inner=20)
    target = min(3 * closure, case.upstream * 1e-6 / 30)
    return (
        case.name,
        f"{ours * 1e9:.0f} ns",
        f"{1 / ours:,.0f} /s",
        f"{closure * 1e9:.0f} ns",
        f"{ours / closure:.2f}",
        f"{case.upstream * 1e-6 / ours:.0f} times",
        f"{target * 1e9:.0f} ns, {'met' if ours <= target else 'MISSED'}",
        f"{counted * 1e6:.1f} µs",
        f"{compiling * 1e3:.2f} ms",
    )


def per_call(function: Callable[[BoundDevice], Any], bound: BoundDevice) -> float:
    """Seconds per call, without the time of the loop around it."""

    def loop() -> None:
        for _ in range(_INNER):
            function(bound)

    def empty() -> None:
        for _ in range(_INNER):
            pass

    return (best_of(loop, rounds=15) - best_of(empty, rounds=5)) / _INNER


def main() -> None:
    bound = bind(GPU, from_plain(Device, DEVICE))
    columns = (
        "expression",
        "evaluate",
        "rate",
        "closure",
        "ratio",
        "faster than upstream",
        "target",
        "counted",
        "compile",
    )
    publish("cel", "Device selectors", columns, [measure(case, bound) for case in CASES])


if __name__ == "__main__":
    main()
