"""Sets of completion indexes as text: `0-3,5`. Pure."""

from __future__ import annotations

from collections.abc import Iterable


def parse_indexes(text: str, completions: int) -> set[int]:
    """The indexes below `completions`. A part that is no interval says nothing."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            found.update(range(int(first), min(int(last or first), completions - 1) + 1))
    return found


def format_indexes(indexes: Iterable[int]) -> str:
    """Intervals in rising order; two neighbours are told apart by a comma, as upstream does."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][-1] == index - 1:
            runs[-1] = [runs[-1][0], index]
        else:
            runs.append([index])
    return ",".join(_interval(run[0], run[-1]) for run in runs)


def _interval(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"
