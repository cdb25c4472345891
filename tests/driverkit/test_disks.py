"""Real disks that are full or read-only: small file systems in memory, where the machine allows to mount them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.driverkit.node import Leds, led_node, on_loop

BLOCK = 4096


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, capture_output=True)


@contextmanager
def small_disk(path: Path) -> Iterator[Path]:
    """A file system of 64 KiB at the path."""
    path.mkdir(parents=True)
    try:
        mount("-t", "tmpfs", "-o", "size=64k", "tmpfs", str(path))
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"mounting a file system is not allowed here: {error}")
    try:
        yield path
    finally:
        subprocess.run(["umount", str(path)], check=True)


def fill(path: Path) -> Path:
    """Leave no room; removing the result makes room again."""
    filler = path / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * BLOCK)
        except OSError:
            return filler


@on_loop
async def test_a_disk_without_room_fails_claims_until_there_is_room() -> None:
    async with led_node() as node:
        with small_disk(node.root / "plugins"):
            driver = Leds()
            plugin = node.plugin(driver)
            await plugin.start()
            kept, ref = await node.claim("kept"), await node.claim("blink", "led-1")
            await plugin.prepare([kept])
            filler = fill(node.root / "plugins")
            error = (await plugin.prepare([ref]))[ref.uid].error
            assert "No space left on device" in error
            assert driver.log == ["prepare default/kept"]
            assert await plugin.unprepare([kept]) == {kept.uid: ""}
            filler.unlink()
            assert (await plugin.prepare([ref]))[ref.uid].error == ""
            await plugin.unprepare([ref])


@on_loop
async def test_a_read_only_cdi_directory_fails_claims_until_it_can_be_written() -> None:
    async with led_node() as node:
        with small_disk(node.root / "cdi") as cdi:
            driver = Leds()
            plugin = node.plugin(driver)
            await plugin.start()
            ref = await node.claim()
            mount("-o", "remount,ro", str(cdi))
            error = (await plugin.prepare([ref]))[ref.uid].error
            assert error == f"cannot write {cdi}/leds.example.com-{ref.uid}.json: Read-only file system"
            assert driver.lit == set()
            mount("-o", "remount,rw", str(cdi))
            assert (await plugin.prepare([ref]))[ref.uid].error == ""
            mount("-o", "remount,ro", str(cdi))
            assert "Read-only file system" in (await plugin.unprepare([ref]))[ref.uid]
            mount("-o", "remount,rw", str(cdi))
            assert await plugin.unprepare([ref]) == {ref.uid: ""}
            assert node.cdi_files == []
