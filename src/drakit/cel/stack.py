"""Room on the Python stack: an expression may be nested as deeply as the language allows, wherever it is used.

In:  a function that can be run twice.
Out: its value. Where the stack that the caller has left does not suffice, it runs again on a stack of its own, so that
     an answer never depends on who asks. RecursionError only when that is too small as well.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TypeVar

_FRAMES = 12_000  # of the deepest expressions each level takes about twenty
_BYTES = 64 * 2**20
_ONE_AT_A_TIME = threading.Lock()

_T = TypeVar("_T")


def with_room(function: Callable[[], _T]) -> _T:
    """The value of the function; what it raises is raised."""
    try:
        return function()
    except RecursionError:
        pass  # run again outside this handler, when the exception and its frames are released
    return _on_own_stack(function)


def _on_own_stack(function: Callable[[], _T]) -> _T:
    values: list[_T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            values.append(function())
        except BaseException as error:  # raised again where it was asked for
            errors.append(error)

    with _ONE_AT_A_TIME:  # the limit and the size hold for the whole process
        frames, size = sys.getrecursionlimit(), threading.stack_size(_BYTES)
        sys.setrecursionlimit(max(frames, _FRAMES))
        try:
            thread = threading.Thread(target=run, name="expression")
            thread.start()
            thread.join()
        finally:
            threading.stack_size(size)
            sys.setrecursionlimit(frames)
    for error in errors:
        raise error
    return values[0]
