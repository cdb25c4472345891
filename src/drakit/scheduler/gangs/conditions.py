"""What a PodGroup is told of its scheduling: the condition `PodGroupScheduled`.

In:  how an attempt at pods of a group ended.
Out: the condition in the group's status. Once it is True it stays: pods that come later do not make a group that runs
     unscheduled.
"""

from __future__ import annotations

import logging
from datetime import datetime
from functools import partial

import msgspec

from drakit.api.objects.meta import Condition, find_condition
from drakit.api.objects.workloads import PodGroup
from drakit.api.text.times import format_time
from drakit.base.clock import Clock
from drakit.base.errors import DrakitError
from drakit.client import POD_GROUPS, Client, NotFound
from drakit.scheduler.writers import Writers

log = logging.getLogger("drakit.scheduler")

POD_GROUP_SCHEDULED = "PodGroupScheduled"
SCHEDULED = "Scheduled"
UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"


class GroupConditions:
    def __init__(self, client: Client, clock: Clock, writers: Writers) -> None:
        self._client = client
        self._clock = clock
        self._writers = writers

    def tell(self, group: PodGroup, reason: str, message: str = "") -> None:
        """Have it written, unless the group says so already."""
        change = partial(_changed, group.metadata.uid, reason, message, self._clock.now())
        if change(group) is not None:
            self._writers.later(group.metadata.uid, partial(self._write, group, change))

    async def _write(self, group: PodGroup, change: partial[PodGroup | None]) -> None:
        name, namespace = group.metadata.name, group.metadata.namespace
        try:
            await self._client.mutate(POD_GROUPS, name, change, namespace=namespace, subresource="status", start=group)
        except NotFound:
            return
        except DrakitError as error:
            log.warning("the status of pod group %s/%s cannot be written: %s", namespace, name, error)


def _changed(uid: str, reason: str, message: str, now: datetime, group: PodGroup) -> PodGroup | None:
    """The group with the condition; none when it is to stay as it is."""
    status = "True" if reason == SCHEDULED else "False"
    known = find_condition(group.status.conditions, POD_GROUP_SCHEDULED)
    # Scheduled once is scheduled: a member that is replaced later does not take it back.
    regresses = known is not None and known.status == "True" and status != "True"
    if group.metadata.uid != uid or regresses:
        return None
    since = known.last_transition_time if known is not None and known.status == status else None
    made = Condition(
        type=POD_GROUP_SCHEDULED,
        status=status,
        observed_generation=group.metadata.generation,
        last_transition_time=since or format_time(now),
        reason=reason,
        message=message,
    )
    if made == known:
        return None
    others = [each for each in group.status.conditions if each.type != POD_GROUP_SCHEDULED]
    return msgspec.structs.replace(group, status=msgspec.structs.replace(group.status, conditions=(*others, made)))
