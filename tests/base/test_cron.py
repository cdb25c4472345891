"""Schedules in cron format: which instants fit, and what is no schedule."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakit.base.cron import CronError, parse_schedule

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)  # a Wednesday


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("* * * * *", "2026-03-04 12:01"),
        ("*/15 * * * *", "2026-03-04 12:15"),
        ("0 0 * * *", "2026-03-05 00:00"),
        ("@hourly", "2026-03-04 13:00"),
        ("@every 1h30m", "2026-03-04 13:30"),
        ("30 2-4 1,15 * *", "2026-03-15 02:30"),
        ("0 9 * * MON-FRI", "2026-03-05 09:00"),
        ("0 9 * * 7", "2026-03-08 09:00"),
        ("0 0 29 FEB *", "2028-02-29 00:00"),
        # One of the days that are given is enough.
        ("0 0 13 * FRI", "2026-03-06 00:00"),
    ],
)
def test_the_next_instant(text: str, found: str) -> None:
    after = parse_schedule(text).after(NOON, UTC)
    assert after is not None
    assert f"{after:%Y-%m-%d %H:%M}" == found


def test_a_schedule_holds_in_its_zone() -> None:
    after = parse_schedule("0 9 * * *").after(NOON, ZoneInfo("America/New_York"))
    assert after == datetime(2026, 3, 4, 14, 0, tzinfo=UTC)


def test_a_day_that_never_comes_is_none() -> None:
    assert parse_schedule("0 0 31 2 *").after(NOON, UTC) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("* * * *", r"expected exactly 5 fields, found 4: \[\* \* \* \*\]"),
        ("60 * * * *", r"above maximum \(59\)"),
        ("* * 0 * *", r"below minimum \(1\)"),
        ("5-1 * * * *", "beyond end of range"),
        ("*/0 * * * *", "should be a positive number"),
        ("x * * * *", "invalid syntax"),
        ("@sometimes", "unrecognized descriptor"),
        ("@every 0s", "failed to parse duration"),
    ],
)
def test_what_is_no_schedule_says_why(text: str, why: str) -> None:
    with pytest.raises(CronError, match=why):
        parse_schedule(text)


@given(
    st.integers(0, 59), st.integers(1, 23), st.sampled_from(["*", "1-5", "0,6"]), st.integers(0, 60 * 24 * 40),
)  # fmt: skip
def test_the_next_instant_is_the_first_minute_that_fits(minute: int, step: int, days: str, offset: int) -> None:
    schedule = parse_schedule(f"{minute} */{step} * * {days}")
    begin = NOON + timedelta(minutes=offset)
    wanted = {"*": range(7), "1-5": range(1, 6), "0,6": (0, 6)}[days]
    naive = begin
    while True:
        naive += timedelta(minutes=1)
        if naive.minute == minute and naive.hour % step == 0 and naive.isoweekday() % 7 in wanted:
            break
    assert schedule.after(begin, UTC) == naive
