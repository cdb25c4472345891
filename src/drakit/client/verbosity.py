"""Logs by `-v` 0 to 7, on the levels of the standard library.

In:  the number of the flag.
Out: a level of the `drakit` logger. `V[0]` is INFO, what operators want to see always; each further step is one below,
     down to `V[7]`; DEBUG is below them all. Warnings and errors are always there.
"""

from __future__ import annotations

import logging

from drakit.base.errors import UsageError

HIGHEST = 7
V: tuple[int, ...] = tuple(logging.INFO - step for step in range(HIGHEST + 1))
"""Levels for `log.log(V[4], …)`: 2 what the system does, 4 why, 5 what it looked at, 6 requests, 7 their bodies."""

for _step, _level in enumerate(V[1:], start=1):
    logging.addLevelName(_level, f"V{_step}")


def set_verbosity(verbosity: int, logger: logging.Logger | None = None) -> None:
    """Let messages up to `V[verbosity]` through."""
    if not 0 <= verbosity <= HIGHEST:
        raise UsageError(f"-v: {verbosity} is not between 0 and {HIGHEST}")
    (logger or logging.getLogger("drakit")).setLevel(V[verbosity])
