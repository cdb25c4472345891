"""How long plugins take: of some attempts, each call of each plugin is measured.

In:  what a plugin does at an extension point, as a function.
Out: a function that does the same and tells `Metrics` how long it took and how it ended.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from inspect import iscoroutine
from typing import Any

from drakit.base.clock import Clock
from drakit.scheduler.framework import Code, Status
from drakit.scheduler.metrics import Metrics

CODES = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}
_SUCCESS = CODES[Code.SUCCESS]


class Stopwatch:
    def __init__(self, clock: Clock, metrics: Metrics) -> None:
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
    """How a call ended, as figures name it."""
    if type(result) is tuple and result and isinstance(result[0], Status):
        result = result[0]
    return CODES[result.code] if isinstance(result, Status) else _SUCCESS
