"""Schedules in cron format: `*/5 2-4 * * MON`, `@hourly`. Pure.

In:  five fields (minute, hour, day of the month, month, day of the week), or a name.
Out: a Schedule that knows the next instant that fits.

If both days are given, one that fits is enough; so it is in cron.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, tzinfo

import msgspec

_NAMES = {
    "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}  # fmt: skip
_MONTH_NAMES = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_DAYS = {name: number for number, name in enumerate(["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"])}
_FIELDS: tuple[tuple[str, int, int, dict[str, int]], ...] = (
    ("minute", 0, 59, {}), ("hour", 0, 23, {}), ("day of month", 1, 31, {}), ("month", 1, 12, _MONTHS),
    ("day of week", 0, 7, _DAYS),
)  # fmt: skip
_EVERY = re.compile(r"@every ((?:\d+h)?(?:\d+m)?(?:\d+s)?)")
_YEARS = 5
"""How far ahead a day is looked for: a schedule that fits on 29 February has one in that time, most of the time."""


class CronError(ValueError):
    """Text that is no schedule; the message says which part."""


class Schedule(msgspec.Struct, frozen=True):
    """Which minutes fit. `every`: instead of that, an interval."""

    minutes: frozenset[int] = frozenset()
    hours: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    any_day: bool = True
    """Whether one of both days was left open: then the other decides alone."""
    every: timedelta | None = None

    def after(self, instant: datetime, zone: tzinfo) -> datetime | None:
        """The first instant after `instant` that fits, in a zone; none within years."""
        if self.every is not None:
            return instant.replace(microsecond=0) + self.every
        day = instant.astimezone(zone).replace(second=0, microsecond=0) + timedelta(minutes=1)
        for _ in range(366 * _YEARS):
            if self._fits_day(day):
                found = self._time_on(day)
                if found is not None:
                    return found.astimezone(instant.tzinfo)
            day = (day + timedelta(days=1)).replace(hour=0, minute=0)
        return None

    def _fits_day(self, day: datetime) -> bool:
        if day.month not in self.months:
            return False
        by_month, by_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return (by_month and by_week) if self.any_day else (by_month or by_week)

    def _time_on(self, day: datetime) -> datetime | None:
        for hour in sorted(hour for hour in self.hours if hour >= day.hour):
            least = day.minute if hour == day.hour else 0
            minute = min((minute for minute in self.minutes if minute >= least), default=None)
            if minute is not None:
                return day.replace(hour=hour, minute=minute)
        return None


def parse_schedule(text: str) -> Schedule:
    """Raise CronError for what is no schedule."""
    if found := _EVERY.fullmatch(text):
        return Schedule(every=_duration(found[1]))
    words = _NAMES.get(text, text).split()
    if text.startswith("@") and text not in _NAMES:
        raise CronError(f"unrecognized descriptor: {text}")
    if len(words) != len(_FIELDS):
        raise CronError(f"expected exactly 5 fields, found {len(words)}: [{' '.join(words)}]")
    minutes, hours, days, months, week = (_field(word, *about) for word, about in zip(words, _FIELDS, strict=True))
    open_days = any(word.startswith(("*", "?")) for word in (words[2], words[4]))
    # Sunday is 0, and 7 as well.
    return Schedule(minutes, hours, days, months, frozenset(day % 7 for day in week), any_day=open_days)


def _duration(text: str) -> timedelta:
    parts = {unit: int(number) for number, unit in re.findall(r"(\d+)([hms])", text)}
    found = timedelta(hours=parts.get("h", 0), minutes=parts.get("m", 0), seconds=parts.get("s", 0))
    if found < timedelta(seconds=1):
        raise CronError(f"failed to parse duration @every {text}")
    return found


def _field(text: str, name: str, least: int, most: int, words: dict[str, int]) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, slash, step_text = part.partition("/")
        first, dash, last = span.partition("-")
        if first in ("*", "?") and not dash:
            start, end = least, most
        else:
            start = _number(first, words, part)
            # `5/10` means from 5 to the end, in steps of 10.
            end = _number(last, words, part) if dash else most if slash else start
        step = _number(step_text, {}, part) if slash else 1
        if start < least:
            raise CronError(f"beginning of range ({start}) below minimum ({least}): {part}")
        if end > most:
            raise CronError(f"end of range ({end}) above maximum ({most}): {part}")
        if start > end:
            raise CronError(f"beginning of range ({start}) beyond end of range ({end}): {part}")
        if step == 0:
            raise CronError(f"step of range should be a positive number: {part}")
        found.update(range(start, end + 1, step))
    if not found:
        raise CronError(f"{name} is empty")
    return frozenset(found)


def _number(text: str, words: dict[str, int], part: str) -> int:
    if text.upper() in words:
        return words[text.upper()]
    if not text.isdecimal():
        raise CronError(f'failed to parse int from {part}: strconv.Atoi: parsing "{text}": invalid syntax')
    return int(text)
