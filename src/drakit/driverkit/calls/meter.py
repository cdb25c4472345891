"""Where the time of a call goes, and what came of it.

In:  parts of the work as they begin and end.
Out: metrics. `own` is what is left after the author's code, the server, the disk and waiting: the kit's own share.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from drakit.base.clock import Clock

AUTHOR = "author"
SERVER = "server"
DISK = "disk"
WAITING = "waiting"
OWN = "own"
PREPARE = "NodePrepareResources"
UNPREPARE = "NodeUnprepareResources"
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 45)


class CallMeter:
    """Of one call: seconds per part. Parts of claims that run side by side add up."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._begun = clock.monotonic()
        self.parts = dict.fromkeys((AUTHOR, SERVER, DISK, WAITING), 0.0)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        begun = self._clock.monotonic()
        try:
            yield
        finally:
            self.parts[name] += self._clock.monotonic() - begun

    @property
    def total(self) -> float:
        return self._clock.monotonic() - self._begun


class CallMetrics:
    def __init__(self, registry: CollectorRegistry, driver: str) -> None:
        self._driver = driver
        self._calls = Histogram(
            "drakit_driver_call_duration_seconds",
            "Calls of the kubelet, from the first byte of work to the answer.",
            ("driver_name", "method_name"),
            buckets=_BUCKETS,
            registry=registry,
        )
        self._parts = Counter(
            "drakit_driver_call_part_seconds",
            "Where that time went: the author's code, the server, the disk, waiting for other calls, the kit's own.",
            ("driver_name", "method_name", "part"),
            registry=registry,
        )
        self._claims = Counter(
            "drakit_driver_claims",
            "Claims that were asked for, by what came of it.",
            ("driver_name", "method_name", "result"),
            registry=registry,
        )
        in_use = Gauge(
            "dra_resource_claims_in_use",
            "Claims that are prepared.",
            ("driver_name",),
            registry=registry,
        )
        self.in_use = in_use.labels(driver)

    def called(self, method: str, meter: CallMeter) -> None:
        total = meter.total
        self._calls.labels(self._driver, method).observe(total)
        for part, seconds in meter.parts.items():
            self._parts.labels(self._driver, method, part).inc(seconds)
        self._parts.labels(self._driver, method, OWN).inc(max(total - sum(meter.parts.values()), 0.0))

    def answered(self, method: str, result: str) -> None:
        """`result` is `done`, `remembered` or `failed`."""
        self._claims.labels(self._driver, method, result).inc()
