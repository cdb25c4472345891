"""Liveness, readiness and startup probes of one run of a container.

In:  the container's probes, a runner for their handlers, the clock.
Out: `started`, `ready` and `failed` of this run, and a word to the caller whenever one of them changes.

Startup comes first: until it succeeds, the other two are not asked. Readiness starts as no, liveness as yes. A result
counts once it has come `successThreshold` or `failureThreshold` times in a row. After `failed` nothing more is asked:
the container is to be ended, and its next run has probes of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from drakit.base.clock import Clock
from drakit.nodeagent.containers.documents import Document
from drakit.nodeagent.containers.failures import HandlerBroken, HandlerFailed
from drakit.nodeagent.containers.handlers import HandlerRunner, HandlerTarget

LIVENESS, READINESS, STARTUP = "Liveness", "Readiness", "Startup"
_FIELDS = {LIVENESS: "livenessProbe", READINESS: "readinessProbe", STARTUP: "startupProbe"}


@dataclass(frozen=True, slots=True)
class ProbeTimes:
    initial_delay: float = 0.0
    period: float = 10.0
    limit: float = 1.0
    successes: int = 1
    failures: int = 3
    grace: int | None = None
    """The grace period of the container's end when this probe failed, in place of the pod's."""

    @staticmethod
    def of(probe: Document) -> ProbeTimes:
        return ProbeTimes(
            initial_delay=float(probe.get("initialDelaySeconds") or 0),
            period=float(probe.get("periodSeconds") or 10),
            limit=float(probe.get("timeoutSeconds") or 1),
            successes=int(probe.get("successThreshold") or 1),
            failures=int(probe.get("failureThreshold") or 3),
            grace=probe.get("terminationGracePeriodSeconds"),
        )


@dataclass(frozen=True, slots=True)
class ProbeFailure:
    """Why the container is to be ended and started again; `message` is that of the event Killing."""

    message: str
    grace: int | None


class ContainerProbes:
    """Used as `async with` around one run of a container; leaving it ends every probe.

    `on_change` is called after `started`, `ready` or `failed` changed. `on_event` gets the reason and message of each
    Warning: an answer that was bad (Unhealthy), or a probe that could not be made.
    """

    def __init__(
        self,
        target: HandlerTarget,
        *,
        runner: HandlerRunner,
        clock: Clock,
        on_change: Callable[[], None],
        on_event: Callable[[str, str], None],
    ) -> None:
        self._target = target
        self._runner = runner
        self._clock = clock
        self._on_change = on_change
        self._on_event = on_event
        self._tasks: list[asyncio.Task[None]] = []
        self._startup_passed = asyncio.Event()
        self.started = not self._probe(STARTUP)
        self.ready = self.started and not self._probe(READINESS)
        self.failed: ProbeFailure | None = None

    async def __aenter__(self) -> Self:
        if self.started:
            self._startup_passed.set()
        self._tasks = [
            asyncio.create_task(self._watch(kind, probe)) for kind in _FIELDS if (probe := self._probe(kind))
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _probe(self, kind: str) -> Document | None:
        probe: Document | None = self._target.container.get(_FIELDS[kind])
        return probe

    async def _watch(self, kind: str, probe: Document) -> None:
        """Run the probe periodically. A result counts after enough equal answers in a row."""
        times = ProbeTimes.of(probe)
        last, run = None, 0
        begun = self._clock.monotonic()
        if kind != STARTUP:
            await self._startup_passed.wait()
        await self._clock.sleep(times.initial_delay - (self._clock.monotonic() - begun))
        while self.failed is None:
            answer = await self._ask(kind, probe, times)
            if answer is not None:
                run = run + 1 if answer == last else 1
                last = answer
                if run >= (times.successes if answer else times.failures):
                    self._result(kind, times, good=answer)
            if kind == STARTUP and self.started:
                return
            await self._clock.sleep(times.period)

    async def _ask(self, kind: str, probe: Document, times: ProbeTimes) -> bool | None:
        """Run the probe once. None: it could not be run, and the streak of answers goes on."""
        try:
            await self._runner.run(probe, self._target, seconds=times.limit)
        except HandlerFailed as error:
            self._on_event("Unhealthy", f"{kind} probe failed: {error}")
            return False
        except HandlerBroken as error:
            self._on_event("Unhealthy", f"{kind} probe errored and resulted in unknown state: {error}")
            return None
        return True

    def _result(self, kind: str, times: ProbeTimes, *, good: bool) -> None:
        before = (self.started, self.ready, self.failed)
        if kind == READINESS:
            self.ready = good
        elif not good:
            name = self._target.container["name"]
            self.failed = ProbeFailure(f"Container {name} failed {kind.lower()} probe, will be restarted", times.grace)
            self.ready = False
        elif kind == STARTUP:
            self.started = True
            self.ready = not self._probe(READINESS)
            self._startup_passed.set()
        if before != (self.started, self.ready, self.failed):
            self._on_change()
