"""Durations as Kubernetes prints them: two or three significant digits."""

from __future__ import annotations

from datetime import datetime

from drakit.api.text.times import TimeError, parse_time

UNKNOWN = "<unknown>"
_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_YEAR = 365 * _DAY


def human_duration(seconds: float) -> str:
    """`45s`, `5m3s`, `90m`, `3h20m`, `47h`, `2d4h`, `400d`, `3y12d`. A second ahead is `0s`: clocks differ."""
    total = int(seconds)
    if total < 0:
        return "0s" if total == -1 else "<invalid>"
    for limit, unit, name, rest_unit, rest_name in _STEPS:
        if total < limit:
            rest = total % unit // rest_unit if rest_unit else 0
            return f"{total // unit}{name}" + (f"{rest}{rest_name}" if rest else "")
    return f"{total // _YEAR}y"


# Below the limit: the unit that is counted and, if there is room for it, the next smaller one.
_STEPS = (
    (2 * _MINUTE, 1, "s", 0, ""),
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (180 * _MINUTE, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (48 * _HOUR, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
    (2 * _YEAR, _DAY, "d", 0, ""),
    (8 * _YEAR, _YEAR, "y", _DAY, "d"),
)


def age(timestamp: str | None, now: datetime) -> str:
    """How long ago an instant on the wire was."""
    if not timestamp:
        return UNKNOWN
    try:
        return human_duration((now - parse_time(timestamp)).total_seconds())
    except TimeError:
        return UNKNOWN
