"""Reads from a copy that cannot be compared with the original just now: allowed where the reader passes that on.

In:  readers that accept such reads for what they do within a context.
Out: whether there was one, and how old the copy may have been.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class UnverifiedReads:
    """Invariant: `age` is None as long as every read was of the newest state."""

    __slots__ = ("age",)

    def __init__(self) -> None:
        self.age: float | None = None
        """Seconds since the copy was known to be the newest state, for the oldest of the reads."""


_accepting: ContextVar[UnverifiedReads | None] = ContextVar("unverified_reads", default=None)


@contextmanager
def accept_unverified_reads() -> Iterator[UnverifiedReads]:
    """Within it a shared store answers from its copy when it cannot reach the original. Writes are as always."""
    reads = UnverifiedReads()
    token = _accepting.set(reads)
    try:
        yield reads
    finally:
        _accepting.reset(token)


def note_unverified(age: float) -> bool:
    """Tell the reader of this context that its read is that old; whether it accepts such reads."""
    reads = _accepting.get()
    if reads is None:
        return False
    reads.age = age if reads.age is None else max(reads.age, age)
    return True
