"""What a power cut does to a process: it ends at once, with all that it has started."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

from drakit.nodeagent.runtimes.shim.kernel import descendants


def power_cut(pid: int) -> None:
    """When a shim alone is killed, only the first process of its container dies with it."""
    for each in (*descendants(pid), pid):
        with suppress(ProcessLookupError):  # it died with another one
            os.kill(each, signal.SIGKILL)
