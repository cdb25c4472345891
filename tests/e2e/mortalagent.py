"""A `drakit node` that kills itself by signal 9 at a step that a test names.

`python -m tests.e2e.mortalagent DIRECTORY node …`. The file `die-at` in the directory names the step: `before rename`,
or `after prepare, before rename` for the first one after another. When the agent comes there, the file goes, and so
does the agent.
"""

from __future__ import annotations

import functools
import os
import runpy
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from drakit.nodeagent.claims.checkpoint import FILE
from drakit.nodeagent.plugins.drivers import Drivers
from drakit.nodeagent.pods.writer import StatusWriter
from drakit.nodeagent.runtimes.supervised.runtime import SupervisedRuntime


class Death:
    def __init__(self, directory: Path) -> None:
        self._file = directory / "die-at"
        self._steps = self._file.read_text().split(", ")

    def may_come(self, step: str) -> None:
        if step != self._steps[0]:
            return
        if self._steps[1:]:
            self._steps.pop(0)
            return
        self._file.unlink()
        os.kill(os.getpid(), signal.SIGKILL)

    def around(self, owner: Any, name: str) -> None:
        """Die right before a call is made, or right after its answer has come."""
        done = getattr(owner, name)

        @functools.wraps(done)
        async def called(*arguments: Any, **named: Any) -> Any:
            self.may_come(f"before {name}")
            answer = await done(*arguments, **named)
            self.may_come(f"after {name}")
            return answer

        setattr(owner, name, called)

    def around_renames(self) -> None:
        """Of the checkpoint: what is to be in it has been written beside it, and flushed."""
        done: Callable[[Path, Path], Path] = Path.replace

        def replaced(path: Path, target: Path) -> Path:
            if Path(target).name != FILE:
                return done(path, target)
            self.may_come("before rename")
            made = done(path, target)
            self.may_come("after rename")
            return made

        Path.replace = replaced  # type: ignore[method-assign,assignment]


def main(directory: Path, argv: list[str]) -> None:
    death = Death(directory)
    for name in ("prepare", "unprepare"):
        death.around(Drivers, name)
    for name in ("run_sandbox", "create_container", "start_container", "stop_container", "stop_sandbox"):
        death.around(SupervisedRuntime, name)
    death.around(StatusWriter, "delete")
    death.around_renames()
    sys.argv = argv
    runpy.run_module("drakit", run_name="__main__")


if __name__ == "__main__":
    main(Path(sys.argv[1]), ["drakit", *sys.argv[2:]])
