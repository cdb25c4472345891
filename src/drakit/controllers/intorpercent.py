"""Numbers that a user may give as a share: `maxSurge: 25%`. Pure."""

from __future__ import annotations

import math


def scaled(value: int | str | None, total: int, *, round_up: bool) -> int:
    """`value` as a count; a percentage is taken of `total`. Validation has seen to it that it is one of both."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    share = int(value.removesuffix("%")) * total / 100
    return math.ceil(share) if round_up else math.floor(share)
