"""Bounds on sizes and costs. Costs saturate at the largest 64 bit number, which stands for "no bound known"."""

from __future__ import annotations

import math
from typing import NamedTuple

UNBOUNDED = 2**64 - 1
TRAVERSAL = 0.1  # of a string, per character
REGEX = 0.25  # of a pattern, per character
LIST_COST, MAP_COST, STRUCT_COST = 10, 30, 40


def plus(a: int, b: int) -> int:
    return min(a + b, UNBOUNDED)


def times(a: int, b: int) -> int:
    return min(a * b, UNBOUNDED)


def scaled(amount: int, factor: float) -> int:
    """amount x factor, rounded up, in the doubles that upstream computes with."""
    # As a double on purpose: exact integers would differ from upstream for large sizes.
    product = math.ceil(float(amount) * factor) if math.isfinite(factor) else UNBOUNDED
    return min(product, UNBOUNDED)


class Size(NamedTuple):
    """At least `low` and at most `high` characters, bytes, elements or entries."""

    low: int
    high: int

    @staticmethod
    def exactly(size: int) -> Size:
        return Size(size, size)

    def added(self, other: Size) -> Size:
        return Size(plus(self.low, other.low), plus(self.high, other.high))

    def multiplied(self, other: Size) -> Size:
        return Size(times(self.low, other.low), times(self.high, other.high))

    def union(self, other: Size) -> Size:
        return Size(min(self.low, other.low), max(self.high, other.high))


UNKNOWN = Size(0, UNBOUNDED)


class EntrySize(NamedTuple):
    """Sizes of the keys and the values of a list or map."""

    is_list: bool
    key: Size
    value: Size

    def union(self, other: EntrySize) -> EntrySize:
        return EntrySize(self.is_list, self.key.union(other.key), self.value.union(other.value))
