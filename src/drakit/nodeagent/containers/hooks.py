"""Lifecycle hooks, and how a container is brought to its end.

In:  the container's `lifecycle`, its grace period.
Out: HookFailed with the message of the event; a container that has exited.
"""

from __future__ import annotations

from collections.abc import Callable

from drakit.base.clock import Clock
from drakit.base.errors import DeadlineExceeded
from drakit.nodeagent.containers.deadlines import within
from drakit.nodeagent.containers.documents import NOTHING, Document, spec_of
from drakit.nodeagent.containers.failures import HandlerBroken, HandlerFailed, HookFailed
from drakit.nodeagent.containers.handlers import HandlerRunner, HandlerTarget
from drakit.nodeagent.runtimes.contract import Runtime

LEAST_GRACE = 2.0
"""What a container gets to end in any case, as a kubelet gives it."""


def grace_period(pod: Document, *, probe_grace: int | None = None) -> float:
    """Seconds. A deletion's own grace comes before that of a failed probe, and both before the spec's."""
    deletion = (pod.get("metadata") or NOTHING).get("deletionGracePeriodSeconds")
    for seconds in (deletion, probe_grace, spec_of(pod).get("terminationGracePeriodSeconds")):
        if seconds is not None:
            return float(seconds)
    return 30.0


async def run_post_start(target: HandlerTarget, *, runner: HandlerRunner) -> None:
    """Right after the container was started; it does not count as running before. Raises HookFailed."""
    handler = (target.container.get("lifecycle") or NOTHING).get("postStart")
    if handler:
        await _run("PostStartHook", handler, target, runner)


async def run_pre_stop(target: HandlerTarget, *, runner: HandlerRunner) -> None:
    """Before the container is asked to end. Raises HookFailed; the container is ended all the same."""
    handler = (target.container.get("lifecycle") or NOTHING).get("preStop")
    if handler:
        await _run("PreStopHook", handler, target, runner)


async def end_container(
    target: HandlerTarget,
    *,
    grace: float,
    runtime: Runtime,
    runner: HandlerRunner,
    clock: Clock,
    on_event: Callable[[str, str], None],
) -> None:
    """preStop, then stop; the hook's time counts against the grace, of which two seconds are left in any case.

    A failed hook makes an event and is no reason to keep the container.
    """
    begun = clock.monotonic()
    if grace > 0:
        try:
            await within(clock, grace, run_pre_stop(target, runner=runner))
        except HookFailed as error:
            on_event("FailedPreStopHook", str(error))
        except DeadlineExceeded:
            on_event("FailedPreStopHook", f"PreStopHook didn't finish within the grace period of {grace:g} s")
    left = grace - (clock.monotonic() - begun)
    await runtime.stop_container(target.container_id, grace=max(left, LEAST_GRACE))


async def _run(name: str, handler: Document, target: HandlerTarget, runner: HandlerRunner) -> None:
    if "tcpSocket" in handler:
        raise HookFailed(f"{name} failed: a hook must be exec, httpGet or sleep")
    try:
        await runner.run(handler, target, seconds=0)
    except (HandlerFailed, HandlerBroken) as error:
        raise HookFailed(f"{name} failed: {error}") from None
