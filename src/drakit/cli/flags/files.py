"""Files that flags name: what is wrong with one is told with the flag."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from drakit.base.errors import UsageError
from drakit.manifests.files import input_limit


def read_stdin() -> bytes:
    """Standard input, up to one byte more than the limit of all input."""
    # One byte more, so that the reader can tell too much from just enough.
    return sys.stdin.buffer.read(input_limit.get() + 1)


@contextmanager
def explained(what: object) -> Iterator[None]:
    """A file that cannot be read, written or understood is named, with what it was for."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise UsageError(f"{what}: {error}") from None
