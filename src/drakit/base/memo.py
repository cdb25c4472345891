"""Remember what short texts mean.

In:  a function whose first argument is text of unknown origin.
Out: the same function, with a memory that is bounded by number and by bytes: long texts are worked out each time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
_SHORT = 256
"""Characters. Nobody fills the memory with texts that are longer than any that people write."""


def remember_short(
    number: int, *, longest: int = _SHORT
) -> Callable[[Callable[Concatenate[str, P], R]], Callable[Concatenate[str, P], R]]:
    """Remember the results for at most `number` texts of at most `longest` characters."""

    def wrap(function: Callable[Concatenate[str, P], R]) -> Callable[Concatenate[str, P], R]:
        cached = lru_cache(maxsize=number)(function)

        @wraps(function)
        def call(text: str, /, *rest: P.args, **options: P.kwargs) -> R:
            if len(text) > longest:
                return function(text, *rest, **options)
            return cached(text, *rest, **options)  # type: ignore[arg-type]  # all of them are hashable

        return call

    return wrap
