"""Instants are read as Go reads them and written in one form."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from drakit.api.text.times import (
    TimeError,
    canonical_micro_time,
    canonical_time,
    format_micro_time,
    format_time,
    parse_time,
)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05.999Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05,5Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05.123456789+02:00", "2026-01-02T01:04:05Z"),
        ("0987-01-02T03:04:05-00:30", "0987-01-02T03:34:05Z"),
    ],
)
def test_times_are_written_in_utc_to_the_second(text: str, canonical: str) -> None:
    assert canonical_time(text) == canonical
    assert canonical_time(canonical) == canonical


def test_micro_times_keep_six_digits() -> None:
    assert canonical_micro_time("2026-01-02T03:04:05Z") == "2026-01-02T03:04:05.000000Z"
    assert canonical_micro_time("2026-01-02T03:04:05.1234567+01:00") == "2026-01-02T02:04:05.123456Z"


def test_instants_of_any_zone_are_written_in_utc() -> None:
    instant = datetime(2026, 1, 2, 3, 4, 5, 600, tzinfo=timezone(timedelta(hours=5)))
    assert format_time(instant) == "2026-01-01T22:04:05Z"
    assert format_micro_time(instant) == "2026-01-01T22:04:05.000600Z"
    assert parse_time("2026-01-01T22:04:05Z") == datetime(2026, 1, 1, 22, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'parsing time "" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "2006"'),
        ("yesterday", 'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"'),
        ("2026/01/02", 'cannot parse "/01/02" as "-"'),
        ("2026-01-02", 'cannot parse "" as "T"'),
        ("2026-01-02 03:04:05Z", 'cannot parse " 03:04:05Z" as "T"'),
        ("2026-01-02T03:04:05", 'cannot parse "" as "Z07:00"'),
        ("2026-01-02T03:04:05Zz", 'extra text: "z"'),
        ("2026-13-02T03:04:05Z", "month must be in 1..12"),
        ("2026-02-30T03:04:05Z", "day is out of range"),
        ("2026-01-02T24:00:00Z", "hour must be in 0..23"),
        ("0001-01-01T00:00:00+05:00", "parsing time"),
        ("0000-01-01T00:00:00Z", "parsing time"),
    ],
)
def test_what_is_no_time_says_where_it_ends_to_be_one(text: str, message: str) -> None:
    with pytest.raises(TimeError) as error:
        parse_time(text)
    assert message in str(error.value)
