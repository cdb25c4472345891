"""Make the marks of one plugin comparable with those of others: 0 to 100."""

from __future__ import annotations

from collections.abc import Sequence

MOST = 100


def normalize(marks: Sequence[int], *, reverse: bool = False) -> list[int]:
    """The highest becomes 100; `reverse`: the highest becomes 0, and no mark at all 100."""
    highest = max(marks, default=0)
    if highest == 0:
        return [MOST] * len(marks) if reverse else list(marks)
    scaled = [MOST * mark // highest for mark in marks]
    return [MOST - mark for mark in scaled] if reverse else scaled
