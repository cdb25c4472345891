"""When a cron job is due. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from drakit.api.objects.batch import CronJob
from drakit.api.text.times import parse_time
from drakit.base.cron import CronError, Schedule, parse_schedule

_WINDOWS = (timedelta(hours=2), timedelta(days=2), timedelta(days=62), timedelta(days=366 * 5))
"""How far back the last instant is looked for, step by step: one that is due often is found in the first window."""


def schedule_of(cron: CronJob) -> tuple[Schedule, tzinfo]:
    """Raise CronError for a schedule or a zone that is none."""
    name = cron.spec.time_zone
    try:
        zone = ZoneInfo(name) if name else UTC
    except (ZoneInfoNotFoundError, ValueError):
        raise CronError(f"unknown time zone {name}") from None
    return parse_schedule(cron.spec.schedule), zone


def beginning(cron: CronJob, now: datetime) -> datetime:
    """Since when instants count: the last that was met, or the creation; not longer ago than a start may be late."""
    since = parse_time(cron.status.last_schedule_time or cron.metadata.creation_timestamp or "1970-01-01T00:00:00Z")
    late = cron.spec.starting_deadline_seconds
    return since if late is None else max(since, now - timedelta(seconds=late))


def last_due(schedule: Schedule, zone: tzinfo, begin: datetime, now: datetime) -> datetime | None:
    """The latest instant after `begin` that is not after `now`."""
    if schedule.every is not None:
        count = (now - begin) // schedule.every
        return begin + count * schedule.every if count > 0 else None
    for window in _WINDOWS:
        start = max(begin, now - window)
        found, following = None, schedule.after(start, zone)
        while following is not None and following <= now:
            found, following = following, schedule.after(following, zone)
        if found is not None or start == begin:
            return found
    return None
