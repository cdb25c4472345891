"""Make the scores of one plugin comparable with those of others: 0 to 100."""

from __future__ import annotations

from collections.abc import Sequence

MOST = 100


def normalize(scores: Sequence[int], *, reverse: bool = False) -> list[int]:
    """The highest becomes 100. With `reverse` the highest becomes 0; if all are 0, all become 100."""
    highest = max(scores, default=0)
    if highest == 0:
        return [MOST] * len(scores) if reverse else list(scores)
    scaled = [MOST * score // highest for score in scores]
    return [MOST - score for score in scaled] if reverse else scaled
