"""What a component tells of its inside beside metrics and health: the scheduler, what it has decided."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from drakit.scheduler import Scheduler

SCHEDULER_STATE = "/debug/drakit/scheduler"


def pages_of(component: object) -> dict[str, Callable[[], bytes]]:
    """Documents in JSON by path."""
    if not isinstance(component, Scheduler):
        return {}
    return {SCHEDULER_STATE: lambda: msgspec.json.encode(component.state())}
