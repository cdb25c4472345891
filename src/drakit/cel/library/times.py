"""Durations and timestamps: text to value and back, and the parts of a date. UTC unless a zone is given."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

from drakit.cel.checking.declarations import Function, Overload
from drakit.cel.checking.types import DURATION, INT, STRING, TIMESTAMP
from drakit.cel.errors import EvalError
from drakit.cel.operators import MAX_TIME, MIN_TIME
from drakit.cel.values import INT_MAX, INT_MIN, Duration, Timestamp

_SECOND = 10**9
_EPOCH, _START = datetime(1970, 1, 1, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC)
_YEAR_ONE, _CYCLE = MIN_TIME // _SECOND, 146097 * 86400
_NUMBER = re.compile(r"[+-]?\d{1,6}", re.ASCII)
_UNITS = {
    "ns": 1,
    "us": 1000,
    "µs": 1000,
    "μs": 1000,
    "ms": 10**6,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_RFC3339 = re.compile(  # Go reads hours of one digit, and offsets of up to 24 hours and 60 minutes
    r"(\d{4})-(\d{2})-(\d{2})T(\d{1,2}):(\d{2}):(\d{2})(?:[.,](\d+))?(?:Z|([+-])(\d{2}):(\d{2}))", re.ASCII
)


def parse_duration(text: str) -> Duration:
    """`1h30m`, `-1.5s`: signed decimal numbers, each with its unit."""
    wrong = EvalError("type conversion error from 'string' to 'google.protobuf.Duration'")
    body = text[1:] if text[:1] in {"+", "-"} else text
    if body == "0":
        return Duration(0)
    if not body:
        raise wrong
    total, at = 0, 0
    while at < len(body):
        part = _PART.match(body, at)
        if part is None or not (part[1] or part[2]) or len(part[1]) > 20:
            raise wrong
        total += int(part[1] or "0") * _UNITS[part[3]] + _fraction(part[2] or "", _UNITS[part[3]])
        at = part.end()
    total = -total if text[0] == "-" else total
    if not INT_MIN <= total <= INT_MAX:
        raise wrong
    return Duration(total)


def _fraction(digits: str, unit: int) -> int:
    """What is behind the point, in the doubles that Go computes with."""
    digits = digits[:18]
    return int(float(digits or "0") * (unit / 10 ** len(digits)))


def format_duration(duration: Duration) -> str:
    """Seconds as the shortest decimal number that tells the double apart."""
    whole, rest = divmod(abs(duration.nanos), _SECOND)
    seconds = whole + rest / 1e9
    return f"{plain(-seconds if duration.nanos < 0 else seconds)}s"


def plain(number: float) -> str:
    """The shortest digits of a double, without an exponent."""
    if number == 0:
        return "-0" if str(number).startswith("-") else "0"
    text = format(Decimal(repr(number)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def parse_timestamp(text: str) -> Timestamp:
    """RFC 3339, fractions of any length cut to nanoseconds."""
    wrong = EvalError("type conversion error from 'string' to 'google.protobuf.Timestamp'")
    found = _RFC3339.fullmatch(text)
    if found is None:
        raise wrong
    *parts, fraction, sign, hours, minutes = found.groups()
    offset = (int(hours) * 3600 + int(minutes) * 60) * (-1 if sign == "-" else 1) if sign else 0
    if sign and (int(hours) > 24 or int(minutes) > 60):
        raise wrong
    year, month, day, hour, minute, second = map(int, parts)
    try:
        # Year 0 is valid RFC 3339 and unknown to datetime: it is an overflow, not a wrong format.
        local = datetime(max(year, 1), month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        raise wrong from None
    nanos = int((fraction or "0")[:9].ljust(9, "0"))
    total = _seconds(local) * _SECOND + nanos - offset * _SECOND
    if year == 0 or not MIN_TIME <= total <= MAX_TIME:
        raise EvalError("timestamp overflow")
    return Timestamp(total, offset)


def _seconds(moment: datetime) -> int:
    delta = moment - _EPOCH
    return delta.days * 86400 + delta.seconds


def _civil(seconds: int) -> tuple[datetime, int]:
    """Seconds since 1970 as a date of the years 1 to 400, and the years to add: the calendar repeats every 400."""
    cycles, within = divmod(seconds - _YEAR_ONE, _CYCLE)
    return _START + timedelta(seconds=within), 400 * cycles


def format_timestamp(timestamp: Timestamp) -> str:
    seconds, nanos = divmod(timestamp.nanos, _SECOND)
    local, years = _civil(seconds + timestamp.offset)
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    hours, rest = divmod(abs(timestamp.offset) // 60, 60)
    zone = f"{'-' if timestamp.offset < 0 else '+'}{hours:02d}:{rest:02d}" if timestamp.offset else "Z"
    return f"{local.year + years:04d}-{local:%m-%dT%H:%M:%S}{fraction}{zone}"


def _offset(seconds: int, zone: str) -> int:
    """How many seconds a zone of the time zone database, or `+05:30`, is ahead of UTC at a moment."""
    head, colon, tail = zone.partition(":")
    if not colon:
        return 0 if zone in {"", "UTC", "Local"} else _named_offset(seconds, zone)
    if not _NUMBER.fullmatch(head) or not _NUMBER.fullmatch(tail):
        raise EvalError(f'strconv.Atoi: parsing "{zone}": invalid syntax')
    return 60 * (int(head) * 60 + (-int(tail) if zone[0] == "-" else int(tail)))


def _named_offset(seconds: int, name: str) -> int:
    try:
        zone = ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise EvalError(f"unknown time zone {name}") from None
    day = 86400  # the database has nothing to say on the first and last day that there are, where sums overflow
    moment = _EPOCH + timedelta(seconds=min(max(seconds, _YEAR_ONE + day), MAX_TIME // _SECOND - day))
    ahead = moment.astimezone(zone).utcoffset() or timedelta()
    return ahead.days * day + ahead.seconds


_PARTS: dict[str, Callable[[datetime, int], int]] = {
    "getFullYear": lambda t, years: t.year + years,
    "getMonth": lambda t, _: t.month - 1,
    "getDayOfYear": lambda t, _: t.timetuple().tm_yday - 1,
    "getDayOfMonth": lambda t, _: t.day - 1,
    "getDate": lambda t, _: t.day,
    "getDayOfWeek": lambda t, _: t.isoweekday() % 7,
    "getHours": lambda t, _: t.hour,
    "getMinutes": lambda t, _: t.minute,
    "getSeconds": lambda t, _: t.second,
}
_OVERLOADS = {
    "getFullYear": "timestamp_to_year",
    "getMonth": "timestamp_to_month",
    "getDayOfYear": "timestamp_to_day_of_year",
    "getDayOfMonth": "timestamp_to_day_of_month",
    "getDate": "timestamp_to_day_of_month_1_based",
    "getDayOfWeek": "timestamp_to_day_of_week",
    "getHours": "timestamp_to_hours",
    "getMinutes": "timestamp_to_minutes",
    "getSeconds": "timestamp_to_seconds",
    "getMilliseconds": "timestamp_to_milliseconds",
}
_DURATION_UNITS = {"Hours": 3600 * _SECOND, "Minutes": 60 * _SECOND, "Seconds": _SECOND, "Milliseconds": 10**6}


def _milliseconds(timestamp: Timestamp, zone: str = "UTC") -> int:
    # Only for its error: no zone changes the milliseconds, but a wrong one is still wrong.
    _offset(timestamp.nanos // _SECOND, zone)
    return timestamp.nanos % _SECOND // 10**6


def _getter(name: str) -> Callable[..., int]:
    if name == "getMilliseconds":
        return _milliseconds
    part = _PARTS[name]

    def get(timestamp: Timestamp, zone: str = "UTC") -> int:
        seconds = timestamp.nanos // _SECOND
        return part(*_civil(seconds + _offset(seconds, zone)))

    return get


def _whole(unit: int) -> Callable[[Duration], int]:
    """The number of whole units; all but milliseconds by way of a double, which may round up to the next."""

    def count(duration: Duration) -> int:
        units, rest = divmod(abs(duration.nanos), unit)
        if unit >= _SECOND:
            units = int(units + rest / unit)
        return -units if duration.nanos < 0 else units

    return count


def _function(name: str, overload: str) -> Function:
    get = _getter(name)
    overloads = [
        Overload(overload, (TIMESTAMP,), INT, get, member=True, raises=False),
        Overload(f"{overload}_with_tz", (TIMESTAMP, STRING), INT, get, member=True),
    ]
    unit = name.removeprefix("get")
    if unit in _DURATION_UNITS:
        count = _whole(_DURATION_UNITS[unit])
        overloads.append(Overload(f"duration_to_{unit.lower()}", (DURATION,), INT, count, member=True, raises=False))
    return Function(name, tuple(overloads))


FUNCTIONS = tuple(_function(name, overload) for name, overload in _OVERLOADS.items())
