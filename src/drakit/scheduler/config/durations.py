"""Lengths of time as Go writes them: `600s`, `1m30s`, `1.5h`."""

from __future__ import annotations

import re

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_WHOLE = re.compile(rf"[-+]?(?:0|(?:{_PART.pattern})+)")
_MOST = 2**63 * 1e-9  # what 64 bits of nanoseconds hold


def seconds(text: str) -> float | None:
    """The length in seconds, or None for text that is none."""
    if len(text) > 100 or not _WHOLE.fullmatch(text):
        return None
    length = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    if length >= _MOST:
        return None
    return -length if text.startswith("-") else length
