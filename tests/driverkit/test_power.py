"""The power goes at every step: what was not flushed is lost, the machine boots again. In memory, without sockets."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from drakit.driverkit import ClaimRef, KubeletPlugin
from drakit.driverkit.state.files import LockFile
from drakit.simulate.disks.files import DiskFiles
from tests.driverkit.node import LedNode, Leds, led_node, on_loop

CDI = "cdi"


class PowerCut(BaseException):
    """Nothing of the process gets to see it."""


class MemoryFiles:
    """Files of which a cut of the power leaves what was flushed; the CDI directory is in memory, as /run is."""

    def __init__(self, cut_at: int = 0) -> None:
        self._now: dict[Path, bytes] = {}
        self._on_disk: dict[Path, bytes] = {}
        self._cut_at = cut_at
        self._locks = DiskFiles()
        self.steps = 0

    def cut(self) -> None:
        """The machine boots: what was on disk is there."""
        self._now = {path: content for path, content in self._on_disk.items() if path.parent.name != CDI}
        self._on_disk = dict(self._now)
        self._locks = DiskFiles()
        self._cut_at = 0

    def step(self) -> None:
        self.steps += 1
        if self.steps == self._cut_at:
            raise PowerCut

    async def read(self, path: Path) -> bytes | None:
        return self._now.get(path)

    async def write(self, path: Path, content: bytes, *, flush: bool = True) -> None:
        self.step()
        self._now[path] = content
        if flush:
            self._on_disk[path] = content
        self.step()

    async def overwrite(self, path: Path, content: bytes) -> None:
        self._now[path] = content

    async def remove(self, path: Path) -> None:
        self.step()
        self._now.pop(path, None)
        self.step()

    async def remove_tree(self, path: Path) -> None:
        for each in [found for found in self._now if path in found.parents]:
            del self._now[each]

    async def rename(self, path: Path, target: Path) -> None:
        self._now[target] = self._now.pop(path)

    async def names(self, directory: Path) -> list[str]:
        return sorted(path.name for path in self._now if path.parent == directory)

    async def make_directory(self, _: Path) -> None:
        return

    def open_lock(self, path: Path) -> LockFile:
        return self._locks.open_lock(path)

    def left(self) -> list[str]:
        return sorted(path.name for path in self._now)


async def alive(node: LedNode, files: MemoryFiles, driver: Leds, boot_id: str) -> KubeletPlugin:
    plugin = node.plugin(driver, files=files, boot_id=boot_id)
    await plugin.start()
    return plugin


async def insist(node: LedNode, files: MemoryFiles, drivers: list[Leds], method: str, ref: ClaimRef) -> bool:
    """Call; if the power goes, boot and call again. Whether it went."""
    plugin = await alive(node, files, drivers[-1], f"boot-{len(drivers)}")
    call = plugin.prepare if method == "prepare" else plugin.unprepare
    try:
        await call([ref])
    except PowerCut:
        files.cut()
        drivers.append(Leds())  # what was lit is dark
        plugin = await alive(node, files, drivers[-1], f"boot-{len(drivers)}")
        call = plugin.prepare if method == "prepare" else plugin.unprepare
        await call([ref])
        return True
    return False


@on_loop
async def test_when_the_power_goes_at_any_step_the_claim_is_prepared_again_and_nothing_is_left() -> None:
    async with led_node() as node:
        gone, cut_at = True, 0
        while gone:
            cut_at += 1
            files, drivers = MemoryFiles(cut_at), [Leds()]
            ref = await node.claim(f"blink-{cut_at}")
            gone = await insist(node, files, drivers, "prepare", ref)
            assert drivers[-1].lit == {ref.uid}
            assert files.left() == sorted([f"leds.example.com-{ref.uid}.json", f"{ref.uid}.json"])
            gone = await insist(node, files, drivers, "unprepare", ref) or gone
            assert (drivers[-1].lit, files.left()) == (set(), []), f"step {cut_at}"
        assert cut_at > 10


@on_loop
async def test_whatever_is_lost_a_claim_that_was_begun_is_known_after_the_boot() -> None:
    """A driver whose preparation outlives the machine is asked to undo it."""
    async with led_node() as node:
        files, driver = MemoryFiles(cut_at=4), Leds()
        ref = await node.claim()
        with pytest.raises(PowerCut):
            await (await alive(node, files, driver, "boot-1")).prepare([ref])
        files.cut()
        after = Leds()
        plugin = await alive(node, files, after, "boot-2")
        assert await plugin.unprepare([ref]) == {ref.uid: ""}
        assert after.log == ["unprepare default/blink"]


@on_loop
async def test_two_plugins_in_one_process_need_neither_sockets_nor_a_disk() -> None:
    async with led_node() as node:
        ref = await node.claim()
        plugins = [await alive(node, MemoryFiles(), Leds(), "boot-1") for _ in range(2)]
        answers = await asyncio.gather(*(plugin.prepare([ref]) for plugin in plugins))
        assert [answer[ref.uid].error for answer in answers] == ["", ""]
        assert list(node.root.glob("plugins/**/*.json")) == []
