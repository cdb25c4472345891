"""Times as text: RFC 3339 in UTC, to the second (`Time`) or the microsecond (`MicroTime`).

Structs keep times as canonical text, which is cheap to compare and to copy; arithmetic goes through `parse_time`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from drakit.base.memo import remember_short

_LAYOUT = "2006-01-02T15:04:05Z07:00"
_ELEMENTS = (
    ("2006", re.compile(r"\d{4}", re.ASCII)),
    ("-", re.compile("-")),
    ("01", re.compile(r"\d\d", re.ASCII)),
    ("-", re.compile("-")),
    ("02", re.compile(r"\d\d", re.ASCII)),
    ("T", re.compile("T")),
    ("15", re.compile(r"\d\d", re.ASCII)),
    (":", re.compile(":")),
    ("04", re.compile(r"\d\d", re.ASCII)),
    (":", re.compile(":")),
    ("05", re.compile(r"\d\d(?:[.,]\d+)?", re.ASCII)),
    ("Z07:00", re.compile(r"Z|[+-]\d\d:\d\d", re.ASCII)),
)
_FRACTION = re.compile(r"[.,](\d+)")
ZERO_TIME = "0001-01-01T00:00:00Z"


class TimeError(ValueError):
    """The text is not a time in RFC 3339."""


@remember_short(4096)
def parse_time(text: str) -> datetime:
    """Read RFC 3339; raise TimeError in the words of Go's parser."""
    rest = text
    for element, pattern in _ELEMENTS:
        found = pattern.match(rest)
        if not found:
            raise TimeError(f'parsing time "{text}" as "{_LAYOUT}": cannot parse "{rest}" as "{element}"')
        rest = rest[found.end() :]
    if rest:
        raise TimeError(f'parsing time "{text}": extra text: "{rest}"')
    try:
        # Python reads at most six digits of a fraction.
        return datetime.fromisoformat(_FRACTION.sub(lambda digits: "." + digits[1][:6].ljust(6, "0"), text)).astimezone(
            UTC
        )
    except (ValueError, OverflowError) as error:
        raise TimeError(f'parsing time "{text}": {error}') from None


def format_time(instant: datetime) -> str:
    """Format to the second, as `Time` is written. Fractions are cut off."""
    return f"{instant.astimezone(UTC).isoformat(timespec='seconds')[:19]}Z"


def format_micro_time(instant: datetime) -> str:
    """Format to the microsecond, as `MicroTime` is written."""
    return f"{instant.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}".rjust(27, "0")


@remember_short(4096)
def canonical_time(text: str) -> str:
    return format_time(parse_time(text))


@remember_short(4096)
def canonical_micro_time(text: str) -> str:
    return format_micro_time(parse_time(text))
