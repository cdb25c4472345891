"""The plugin registry on disk: what is found in it, and how soon a change is seen."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from drakit.base.clock import FakeClock
from drakit.nodeagent.plugins import directory
from drakit.nodeagent.plugins.directory import POLL_SECONDS, RegistryDirectory
from tests.builders.loop import on_loop


def listen(path: Path) -> None:
    """Leave a socket there; nobody answers."""
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def names(registry: RegistryDirectory, root: Path) -> list[str]:
    return [os.path.relpath(path, root) for path in registry.sockets()]


@on_loop
async def test_sockets_are_found_in_subdirectories_too_and_nothing_else_is() -> None:
    with TemporaryDirectory() as made:
        root = Path(made)
        async with RegistryDirectory(root, FakeClock()) as registry:
            (root / "sub").mkdir()
            for name in ("b-reg.sock", "nosuffix", ".hidden.sock", "sub/a.sock"):
                listen(root / name)
            (root / "file.sock").write_text("")
            assert names(registry, root) == ["b-reg.sock", "nosuffix", "sub/a.sock"]


@on_loop
async def test_a_socket_that_was_replaced_between_two_looks_is_another_one() -> None:
    with TemporaryDirectory() as made:
        root = Path(made)
        listen(root / "a.sock")
        async with RegistryDirectory(root, FakeClock()) as registry:
            before = dict(registry.sockets())
            assert registry.sockets() == before
            listen(root / ".next")
            (root / ".next").rename(root / "a.sock")
            after = dict(registry.sockets())
            assert (list(after), after == before) == (list(before), False)


@on_loop
async def test_a_link_to_nowhere_does_not_hide_the_sockets_after_it() -> None:
    with TemporaryDirectory() as made:
        root = Path(made)
        (root / "a.sock").symlink_to(root / "gone")
        listen(root / "b.sock")
        async with RegistryDirectory(root, FakeClock()) as registry:
            assert names(registry, root) == ["b.sock"]


@on_loop
async def test_a_directory_that_cannot_be_read_for_a_moment_costs_no_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_many(_: Path) -> list[os.DirEntry[str]]:
        raise OSError(24, "Too many open files")

    with TemporaryDirectory() as made:
        root = Path(made)
        listen(root / "a.sock")
        async with RegistryDirectory(root, FakeClock()) as registry:
            assert names(registry, root) == ["a.sock"]
            with monkeypatch.context() as failing:
                failing.setattr(directory, "_entries", too_many)
                assert names(registry, root) == ["a.sock"]
            (root / "a.sock").unlink()
            assert names(registry, root) == []


@on_loop
async def test_a_new_socket_is_told_at_once() -> None:
    with TemporaryDirectory() as made:
        root = Path(made)
        async with RegistryDirectory(root, FakeClock()) as registry:
            registry.sockets()
            word = asyncio.create_task(registry.changed())
            await asyncio.sleep(0)
            listen(root / "a.sock")
            async with asyncio.timeout(60):
                await word  # the clock stands still: nobody polls


@on_loop
async def test_without_inotify_the_directory_is_looked_at_every_second(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(directory, "Inotify", refused)
    with TemporaryDirectory() as made:
        root, clock = Path(made), FakeClock()
        async with RegistryDirectory(root, clock) as registry:
            word = asyncio.create_task(registry.changed())
            await clock.run_for(POLL_SECONDS - 0.1)
            listen(root / "a.sock")
            assert not word.done()
            await clock.run_for(0.2)
            assert word.done()
            assert names(registry, root) == ["a.sock"]
