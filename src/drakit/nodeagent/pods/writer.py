"""Write pod statuses to the server, beside the work on the pods.

In:  statuses of a pod, each time it has one that differs.
Out: patches of the pod's status that carry its uid, in order. Fields that the agent does not own, and conditions of
     others, stay as they are. A status that the server does not take now is tried again, or the newest one is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from drakit.api import Partial, Pod
from drakit.api.objects.plain import Plain
from drakit.api.text.times import format_time
from drakit.base.clock import Clock
from drakit.base.errors import DrakitError
from drakit.client import PODS, STRATEGIC, Client, Conflict, NotFound

log = logging.getLogger("drakit.nodeagent")

_FIRST_WAIT = 1.0
_LONGEST_WAIT = 30.0


@dataclass(slots=True)
class _Desk:
    """The statuses of one pod. Invariant: those that wait are newer than `written`, the newest last."""

    pod: Partial[Pod]
    waiting: list[Plain] = field(default_factory=list)
    written: Plain | None = None
    task: asyncio.Task[None] | None = None
    gone: bool = False

    @property
    def newest(self) -> Plain | None:
        return self.waiting[-1] if self.waiting else self.written


class StatusWriter:
    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._desks: dict[str, _Desk] = {}

    def last(self, uid: str) -> Plain | None:
        """The newest status that was given for a pod, written or not."""
        desk = self._desks.get(uid)
        return None if desk is None else desk.newest

    def put(self, pod: Partial[Pod], status: Plain) -> None:
        """Queue a status to be written."""
        uid = pod.view.metadata.uid
        desk = self._desks.setdefault(uid, _Desk(pod))
        desk.pod = pod
        before = desk.newest or pod.document.get("status") or {}
        timed = self._with_times(status, before, pod.view.metadata.generation)
        if desk.gone or _is_same(timed, before):
            return
        desk.waiting.append(timed)
        if desk.task is None or desk.task.done():
            desk.task = asyncio.create_task(self._write(desk), name=f"status of {pod.view.metadata.name}")

    async def flush(self, uid: str) -> None:
        """Return when the newest status is written, or the pod is gone from the server."""
        desk = self._desks.get(uid)
        if desk is not None and desk.task is not None:
            await asyncio.shield(desk.task)

    async def flush_all(self) -> None:
        """Return when all that was given is written."""
        for uid in list(self._desks):
            await self.flush(uid)

    def forget(self, uid: str) -> None:
        desk = self._desks.pop(uid, None)
        if desk is not None and desk.task is not None:
            desk.task.cancel()

    async def stop(self) -> None:
        tasks = [desk.task for desk in self._desks.values() if desk.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _write(self, desk: _Desk) -> None:
        wait = _FIRST_WAIT
        while desk.waiting:
            # One patch at a time per pod: two under way could arrive in the wrong order.
            status = desk.waiting[0]
            try:
                await self._client.patch(desk.pod, {"status": status}, kind=STRATEGIC, subresource="status")
            except DrakitError as error:
                if await self._is_gone(desk.pod, error):
                    # Gone, or another pod of its name: nobody reads this status any more.
                    desk.gone = True
                    desk.waiting.clear()
                    return
                log.warning("status of %s is not written yet: %s", desk.pod.view.metadata.name, error)
                await self._clock.sleep(wait)
                wait = min(wait * 2, _LONGEST_WAIT)
                del desk.waiting[:-1]  # what was passed through meanwhile is of no interest
            else:
                desk.written = desk.waiting.pop(0)

    async def _is_gone(self, pod: Partial[Pod], error: DrakitError) -> bool:
        """Whether a refusal says so. A conflict may also come of many writers at once: only a look tells."""
        if not isinstance(error, Conflict):
            return isinstance(error, NotFound)
        metadata = pod.view.metadata
        try:
            found = await self._client.find(PODS, metadata.name, namespace=metadata.namespace)
        except DrakitError:
            return False
        return found is None or found.view.metadata.uid != metadata.uid

    def _with_times(self, status: Plain, before: Mapping[str, Any], generation: int | None) -> Plain:
        """Conditions keep the time of their last transition; a pod keeps its start time."""
        now = format_time(self._clock.now())
        old = {each["type"]: each for each in before.get("conditions") or ()}
        conditions = [_timed(each, old.get(each["type"]), now, generation) for each in status.get("conditions") or ()]
        timed = {**status, "startTime": before.get("startTime") or status.get("startTime") or now}
        if generation:
            timed["observedGeneration"] = generation
        return timed | ({"conditions": conditions} if conditions else {})

    async def delete(self, pod: Partial[Pod]) -> None:
        """Remove the pod object, which was only waiting for us. Raise DrakitError; it may be gone already."""
        metadata = pod.view.metadata
        try:
            await self._client.delete(PODS, metadata.name, namespace=metadata.namespace, uid=metadata.uid, grace=0)
        except DrakitError as error:
            if not await self._is_gone(pod, error):
                raise


def _timed(condition: Plain, old: Mapping[str, Any] | None, now: str, generation: int | None) -> Plain:
    same = old is not None and old["status"] == condition["status"]
    moved = old.get("lastTransitionTime") if same and old is not None else None
    made = {**condition, "lastProbeTime": None, "lastTransitionTime": moved or now}
    if generation:
        made["observedGeneration"] = generation
    # A merge keeps what is not named: an old reason must be taken away.
    for key in ("reason", "message"):
        if old is not None and old.get(key) and key not in made:
            made[key] = None
    return made


def _is_same(status: Plain, before: Mapping[str, Any]) -> bool:
    if not _conditions(status) <= _conditions(before):
        return False
    return all(_plain(value) == _plain(before.get(name)) for name, value in status.items() if name != "conditions")


def _conditions(status: Mapping[str, Any]) -> set[tuple[Any, ...]]:
    return {
        (each["type"], each["status"], each.get("reason") or "", each.get("message") or "")
        for each in status.get("conditions") or ()
    }


def _plain(value: Any) -> Any:
    """Without what is empty: a server leaves that out."""
    if isinstance(value, Mapping):
        return {key: plain for key, each in value.items() if (plain := _plain(each)) not in (None, "", [], {})}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
