"""How new the reads of one request must be, in a store that is shared and keeps a copy.

In:  a request: when it begins, and whether it passes on that a read could not be verified.
Out: the store asks for the newest state once per request. A copy that cannot be verified is used where that is
     accepted.

A request must see all that was acknowledged before it began. So the first of its reads makes the copy new enough for
all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class RequestReads:
    """The reads of one request. Invariant: `age` is None as long as every read was of a state that is new enough."""

    __slots__ = ("accepts_unverified", "age", "verified")

    def __init__(self, *, accepts_unverified: bool) -> None:
        self.accepts_unverified = accepts_unverified
        self.verified = False
        """Whether the copy was as new as the original at some moment since the request began."""
        self.age: float | None = None
        """Seconds since the copy was known to be the newest state, for the oldest of the reads."""

    def note_unverified(self, age: float) -> None:
        self.age = age if self.age is None else max(self.age, age)


_reads: ContextVar[RequestReads | None] = ContextVar("request_reads", default=None)


@contextmanager
def request_reads(*, accept_unverified: bool = False) -> Iterator[RequestReads]:
    """What is read within it belongs to one request. Writes are as always."""
    reads = RequestReads(accepts_unverified=accept_unverified)
    token = _reads.set(reads)
    try:
        yield reads
    finally:
        _reads.reset(token)


def current_reads() -> RequestReads:
    """Those of the request of this context; outside of any, each read is for itself."""
    return _reads.get() or RequestReads(accepts_unverified=False)
