"""How long plugins take: of every attempt each extension point, of some attempts each call of each plugin.

In:  the ends of extension points; what a plugin does at one, as a function.
Out: `SchedulerMetrics` told how long they took and how they ended.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from inspect import iscoroutine
from typing import Any

from drakit.base.clock import Clock
from drakit.scheduler.framework import Code, Status
from drakit.scheduler.metrics.attempts import SchedulerMetrics

CODES = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}
_SUCCESS = CODES[Code.SUCCESS]


class Laps:
    """The extension points of one attempt, one after the other."""

    __slots__ = ("_began", "_clock", "_metrics", "_profile")

    def __init__(self, clock: Clock, metrics: SchedulerMetrics, profile: str) -> None:
        self._clock = clock
        self._metrics = metrics
        self._profile = profile
        self._began = clock.monotonic()

    def end(self, point: str, code: Code = Code.SUCCESS) -> None:
        """A point has ended, and another begins."""
        now = self._clock.monotonic()
        self._metrics.points(point, CODES[code], self._profile).observe(now - self._began)
        self._began = now


class Stopwatch:
    def __init__(self, clock: Clock, metrics: SchedulerMetrics) -> None:
        self._clock = clock
        self._metrics = metrics

    def measured(self, call: Callable[..., Any], plugin: str, point: str) -> Callable[..., Any]:
        def timed(*args: Any) -> Any:
            began = self._clock.monotonic()
            result = call(*args)
            if iscoroutine(result):
                return self._awaited(result, plugin, point, began)
            self._tell(plugin, point, result, began)
            return result

        return timed

    async def _awaited(self, result: Coroutine[Any, Any, Any], plugin: str, point: str, began: float) -> Any:
        awaited = await result
        self._tell(plugin, point, awaited, began)
        return awaited

    def _tell(self, plugin: str, point: str, result: Any, began: float) -> None:
        self._metrics.executions(plugin, point, code_name(result)).observe(self._clock.monotonic() - began)


def code_name(result: Any) -> str:
    """How a call ended, as metrics name it."""
    if type(result) is tuple and result and isinstance(result[0], Status):
        result = result[0]
    return CODES[result.code] if isinstance(result, Status) else _SUCCESS
