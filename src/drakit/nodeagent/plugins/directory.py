"""The registry directory: which sockets are in it, and a word when that changes.

In:  a directory.
Out: socket paths with a stamp each; a socket that was replaced has another stamp.

inotify only says that it is time to look; a look every second finds what inotify missed (a network file system, too
many watches), so nothing depends on events being complete or in order.
"""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from asyncinotify import Inotify, Mask

from drakit.base.clock import Clock

log = logging.getLogger("drakit.nodeagent")

Stamp = tuple[int, int]
_EVENTS = Mask.CREATE | Mask.DELETE | Mask.MOVED_FROM | Mask.MOVED_TO | Mask.ATTRIB
POLL_SECONDS = 1.0


class SocketDirectory(Protocol):
    def sockets(self) -> Mapping[str, Stamp]:
        """Paths of what may be dialled, each with a stamp that changes when the file is replaced."""
        ...

    async def changed(self) -> None:
        """Wait until the directory may have changed."""
        ...


class RegistryDirectory:
    """A directory on disk, with its sub-directories. Names that begin with a dot are passed over."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._inotify: Inotify | None = None
        self._watched: set[Path] = set()
        self._last: Mapping[str, Stamp] = {}

    async def __aenter__(self) -> RegistryDirectory:
        self._path.mkdir(parents=True, exist_ok=True)
        try:
            self._inotify = Inotify()
        except OSError as error:
            log.warning("inotify is not to be had (%s): the plugin registry is polled", error)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None

    def sockets(self) -> Mapping[str, Stamp]:
        try:
            self._last = dict(self._scan(self._path))
        except OSError as error:  # too many open files, say: that is no reason to lose every plugin
            log.warning("%s cannot be read: %s", self._path, error)
        return self._last

    async def changed(self) -> None:
        waits = [asyncio.create_task(self._clock.sleep(POLL_SECONDS))]
        if self._inotify is not None:
            waits.append(asyncio.create_task(self._event(self._inotify)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    async def _event(self, inotify: Inotify) -> None:
        await inotify.get()

    def _scan(self, directory: Path) -> Iterator[tuple[str, Stamp]]:
        self._watch(directory)
        for entry in _entries(directory):
            # One that goes meanwhile, or a link to nowhere, must not hide those that come after it.
            with suppress(FileNotFoundError):
                if entry.is_dir(follow_symlinks=False):
                    yield from self._scan(Path(entry.path))
                elif stat.S_ISSOCK((found := entry.stat()).st_mode):
                    yield entry.path, (found.st_ino, found.st_ctime_ns)

    def _watch(self, directory: Path) -> None:
        if self._inotify is None or directory in self._watched:
            return
        try:
            self._inotify.add_watch(directory, _EVENTS)
            self._watched.add(directory)
        except OSError as error:
            log.warning("%s cannot be watched (%s): it is polled", directory, error)


def _entries(directory: Path) -> list[os.DirEntry[str]]:
    """What is in the directory, by name; nothing once it is gone."""
    try:
        with os.scandir(directory) as entries:
            return sorted((each for each in entries if not each.name.startswith(".")), key=lambda each: each.name)
    except FileNotFoundError:
        return []
