"""Durations for people."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from drakit.apiserver.tables import age, human_duration

MINUTE, HOUR, DAY = 60, 3600, 86400


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (0.9, "0s"),
        (119, "119s"),
        (2 * MINUTE, "2m"),
        (5 * MINUTE + 3, "5m3s"),
        (10 * MINUTE + 3, "10m"),
        (179 * MINUTE, "179m"),
        (3 * HOUR, "3h"),
        (3 * HOUR + 20 * MINUTE, "3h20m"),
        (8 * HOUR + 20 * MINUTE, "8h"),
        (47 * HOUR, "47h"),
        (2 * DAY, "2d"),
        (2 * DAY + 4 * HOUR, "2d4h"),
        (8 * DAY + 4 * HOUR, "8d"),
        (729 * DAY, "729d"),
        (2 * 365 * DAY, "2y"),
        (3 * 365 * DAY + 12 * DAY, "3y12d"),
        (9 * 365 * DAY + 12 * DAY, "9y"),
    ],
)
def test_a_duration_shows_two_or_three_digits(seconds: float, text: str) -> None:
    assert human_duration(seconds) == text


def test_an_age_is_counted_from_the_timestamp() -> None:
    now = datetime(2030, 1, 1, 0, 5, 3, tzinfo=UTC)
    assert age("2030-01-01T00:00:00Z", now) == "5m3s"
    assert age("2030-01-01T01:00:00+01:00", now) == "5m3s"


@pytest.mark.parametrize("timestamp", [None, "", "yesterday"])
def test_no_timestamp_is_an_unknown_age(timestamp: str | None) -> None:
    assert age(timestamp, datetime(2030, 1, 1, tzinfo=UTC)) == "<unknown>"
