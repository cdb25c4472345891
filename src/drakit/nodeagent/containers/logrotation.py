"""Keep the logs of containers within bounds.

In:  the containers that run, how large a log may grow, how many files of it are kept.
Out: a log that is too large is renamed with the time (`0.log.20260101-100000`), and a new one is begun;
     all but the newest of the renamed are compressed, the oldest go.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
import shutil
from dataclasses import dataclass
from pathlib import Path

from drakit.base.clock import Clock
from drakit.base.errors import DrakitError
from drakit.nodeagent.runtimes.contract import ContainerState, Runtime

log = logging.getLogger("drakit.nodeagent")

LOOK_SECONDS = 10.0
_STAMP = "%Y%m%d-%H%M%S"
_PACKED, _UNFINISHED = ".gz", ".tmp"


@dataclass(frozen=True, slots=True)
class LogBounds:
    """Of one container: bytes of the file that grows, and files in all."""

    size: int = 10 * 1024 * 1024
    files: int = 5


class LogRotation:
    """Looks at all logs every 10 s, as a kubelet does."""

    def __init__(self, runtime: Runtime, clock: Clock, bounds: LogBounds) -> None:
        self._runtime = runtime
        self._clock = clock
        self._bounds = bounds

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            try:
                await self.look()
            except (DrakitError, OSError) as error:
                log.warning("logs are not rotated: %s", error)

    async def look(self) -> None:
        """Rotate what is too large now."""
        for container in await self._runtime.containers():
            path = Path(container.log_path)
            if container.state is ContainerState.RUNNING and container.log_path and _size(path) > self._bounds.size:
                await self._rotate(container.id, path)

    async def _rotate(self, container_id: str, path: Path) -> None:
        # Room is made first: with a full disk the log would otherwise only grow.
        await asyncio.to_thread(_make_room, path, keep=self._bounds.files - 2)
        renamed = path.with_name(f"{path.name}.{self._clock.now().strftime(_STAMP)}")
        if any(each.name.startswith(renamed.name) for each in rotated(path)):
            return  # twice in a second: the next look is soon enough
        _rename(path, renamed)
        try:
            await self._runtime.reopen_log(container_id)
        except DrakitError:
            _rename(renamed, path)  # the container still writes there
            raise


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def rotated(path: Path) -> list[Path]:
    """The files that a log was renamed to, the oldest first."""
    return sorted(path.parent.glob(f"{path.name}.*"))


def _make_room(path: Path, *, keep: int) -> None:
    """Pack what was renamed before, and remove the oldest beyond `keep`; leftovers of a crash go."""
    for each in rotated(path):
        if each.suffix == _UNFINISHED:
            each.unlink()
    old = rotated(path)
    for each in old[: len(old) - max(keep, 0)]:
        each.unlink()
    for each in rotated(path):
        if each.suffix != _PACKED:
            _pack(each)


def _pack(path: Path) -> None:
    unfinished = path.with_name(path.name + _UNFINISHED)
    with path.open("rb") as source, gzip.open(unfinished, "wb") as target:
        shutil.copyfileobj(source, target)
    unfinished.rename(path.with_name(path.name + _PACKED))
    path.unlink()


def _rename(path: Path, to: Path) -> None:
    path.rename(to)
