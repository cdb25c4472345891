"""What survives a restart, a reboot, a damaged file, a full disk."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest

from drakit.client import CLAIMS
from drakit.driverkit import ClaimRef, KubeletPlugin, PreparedClaim, PreparedDevice
from drakit.driverkit.state.records import Preparation, RecordState, seal, unseal
from tests.driverkit.node import FailingFiles, LedNode, Leds, led_node, led_plugin, node_allocation, on_loop

ON = "prepare default/blink"
OFF = "unprepare default/blink"


async def started(node: LedNode, driver: Leds, *, boot_id: str = "boot-1") -> KubeletPlugin:
    """Another life of the driver on that node."""
    plugin = node.plugin(driver, boot_id=boot_id)
    await plugin.start()
    return plugin


def empty_cdi(node: LedNode) -> None:
    for path in (node.root / "cdi").iterdir():
        path.unlink()


def record_file(node: LedNode, ref: ClaimRef) -> Path:
    return node.root / "plugins" / "leds.example.com" / "claims" / f"{ref.uid}.json"


@on_loop
async def test_after_a_restart_nothing_is_prepared_again_and_files_are_made_anew() -> None:
    async with led_plugin() as (node, plugin, driver):
        ref = await node.claim()
        first = await plugin.prepare([ref])
        content = (node.root / "cdi" / node.cdi_files[0]).read_bytes()
        empty_cdi(node)
        again = await started(node, driver)
        assert (node.root / "cdi" / node.cdi_files[0]).read_bytes() == content
        assert await again.prepare([ref]) == first
        assert driver.log == [ON]


@on_loop
async def test_after_a_reboot_a_claim_is_prepared_again() -> None:
    async with led_plugin() as (node, plugin, driver):
        ref = await node.claim()
        await plugin.prepare([ref])
        empty_cdi(node)
        driver.lit.clear()  # the machine was off
        rebooted = await started(node, driver, boot_id="boot-2")
        assert node.cdi_files == []
        assert (await rebooted.prepare([ref]))[ref.uid].error == ""
        assert len(node.cdi_files) == 1
        assert driver.log == [ON, ON]


@on_loop
async def test_after_a_reboot_a_claim_can_be_unprepared() -> None:
    async with led_plugin() as (node, plugin, driver):
        ref = await node.claim()
        await plugin.prepare([ref])
        rebooted = await started(node, driver, boot_id="boot-2")
        assert await rebooted.unprepare([ref]) == {ref.uid: ""}
        assert driver.log == [ON, OFF]


@on_loop
async def test_what_the_driver_noted_is_there_at_unprepare() -> None:
    async with led_plugin() as (node, plugin, driver):
        driver.switch_on = lambda claim: [  # type: ignore[method-assign]
            each.ready(env={"A": "b"}, notes={"slot": 7, "path": ["x"]}) for each in claim.devices
        ]
        found: list[PreparedClaim] = []
        driver.switch_off = found.append  # type: ignore[method-assign,assignment]
        ref = await node.claim()
        await plugin.prepare([ref])
        await (await started(node, driver)).unprepare([ref])
        assert found[0].devices[0].notes == {"slot": 7, "path": ["x"]}


@pytest.mark.parametrize(
    "content", [b"", b"{", b"null", b"[]", b'{"version":1}', b'{"version":9,"checksum":0,"data":{}}']
)
def test_a_damaged_record_is_set_aside_and_its_claim_cleaned_up_first(content: bytes) -> None:
    @on_loop
    async def run() -> None:
        async with led_plugin() as (node, plugin, driver):
            ref = await node.claim()
            await plugin.prepare([ref])
            record_file(node, ref).write_bytes(content)
            again = await started(node, driver)
            assert record_file(node, ref).with_name(f"{ref.uid}.json.damaged").read_bytes() == content
            assert (await again.prepare([ref]))[ref.uid].error == ""
            assert driver.log == [ON, OFF, ON]
            assert await again.unprepare([ref]) == {ref.uid: ""}
            assert list(record_file(node, ref).parent.iterdir()) == []

    run()


@on_loop
async def test_one_changed_byte_is_noticed() -> None:
    async with led_plugin() as (node, plugin, driver):
        ref = await node.claim()
        await plugin.prepare([ref])
        path = record_file(node, ref)
        path.write_bytes(path.read_bytes().replace(b"led-0", b"led-1", 1))
        assert await plugin.unprepare([ref]) == {ref.uid: ""}
        assert driver.log == [ON, OFF]


def test_a_record_comes_back_as_it_was() -> None:
    device = PreparedDevice(request="r/s", pool="p", device="d", share_id="x", notes=[1], data={"a": {"b": None}})
    ref = ClaimRef(namespace="n", name="m", uid="u")
    record = Preparation(ref=ref, state=RecordState.PREPARED, boot_id="b", devices=(device,), generation=3)
    assert unseal(seal(record)) == record
    assert list(json.loads(seal(record))) == ["version", "checksum", "data"]


@on_loop
async def test_claims_that_do_not_exist_any_more_are_swept() -> None:
    async with led_plugin() as (node, plugin, driver):
        gone, kept = await node.claim("gone"), await node.claim("kept", "led-1")
        await plugin.prepare([gone, kept])
        await node.client.delete(CLAIMS, "gone", namespace="default")
        again = await started(node, driver)
        await again.sweep.sweep()
        assert driver.lit == {kept.uid}
        assert node.cdi_files == [f"leds.example.com-{kept.uid}.json"]


@on_loop
async def test_a_new_claim_of_the_same_name_does_not_keep_the_old_one() -> None:
    async with led_plugin() as (node, plugin, driver):
        old = await node.claim()
        await plugin.prepare([old])
        await node.client.delete(CLAIMS, "blink", namespace="default")
        new = await node.claim()
        await plugin.sweep.sweep()
        assert driver.lit == set()
        assert (await plugin.prepare([new]))[new.uid].error == ""


@on_loop
async def test_files_of_which_nothing_is_remembered_are_removed_at_the_start() -> None:
    async with led_node() as node:
        cdi = node.root / "cdi"
        cdi.mkdir()
        (cdi / "leds.example.com-u-1.json").write_text('{"kind":"leds.example.com/claim"}')
        (cdi / "leds.example.com-b-u-1.json").write_text('{"kind":"leds.example.com-b/claim"}')
        (cdi / "leds.example.com-u-2.json").write_text("of somebody who writes YAML")
        await started(node, Leds())
        assert node.cdi_files == ["leds.example.com-b-u-1.json", "leds.example.com-u-2.json"]


async def reallocate(node: LedNode, *devices: str) -> None:
    """Take the claim's devices away, and give it others."""
    for given in (None, node_allocation(devices) if devices else None):
        claim = await node.client.get(CLAIMS, "blink", namespace="default")
        await node.client.patch_status(claim, {"allocation": given})


@on_loop
async def test_a_claim_that_has_other_devices_by_now_is_prepared_with_those() -> None:
    """A kubelet that lost its checkpoint never asks to unprepare."""
    async with led_plugin() as (node, plugin, driver):
        ref = await node.claim("blink", "led-0")
        await plugin.prepare([ref])
        await reallocate(node, "led-1")
        answer = (await plugin.prepare([ref]))[ref.uid]
        assert [device.device for device, _ in answer.devices] == ["led-1"]
        assert driver.log == [ON, OFF, ON]


@on_loop
async def test_a_claim_that_has_no_devices_any_more_is_swept() -> None:
    async with led_plugin() as (node, plugin, driver):
        ref = await node.claim()
        await plugin.prepare([ref])
        await reallocate(node)
        await plugin.sweep.sweep()
        assert (driver.lit, node.cdi_files) == (set(), [])


# Disks that fail


def full(operation: str, path: Path) -> int | None:
    return errno.ENOSPC if operation in ("write", "flush") else None


@on_loop
async def test_a_full_disk_fails_the_claim_before_the_driver_is_asked() -> None:
    files = FailingFiles()
    async with led_plugin(files=files) as (node, plugin, driver):
        ref = await node.claim()
        files.fails = full
        error = (await plugin.prepare([ref]))[ref.uid].error
        assert error.startswith("cannot remember claim default/blink: [Errno 28] No space left on device")
        assert driver.log == []
        files.fails = lambda _operation, _path: None
        assert (await plugin.prepare([ref]))[ref.uid].error == ""


@on_loop
async def test_a_read_only_cdi_directory_fails_the_claim_and_leaves_nothing() -> None:
    files = FailingFiles()
    async with led_plugin(files=files) as (node, plugin, driver):
        ref = await node.claim()
        files.fails = lambda operation, path: (
            errno.EROFS if path.parent.name == "cdi" and operation != "remove" else None
        )
        error = (await plugin.prepare([ref]))[ref.uid].error
        assert error == f"cannot write {node.root}/cdi/leds.example.com-{ref.uid}.json: Read-only file system"
        assert driver.log == [ON, OFF]
        assert not record_file(node, ref).exists()
        files.fails = lambda _operation, _path: None
        assert (await plugin.prepare([ref]))[ref.uid].error == ""


@on_loop
async def test_a_full_disk_keeps_no_device_from_being_given_back() -> None:
    files = FailingFiles()
    async with led_plugin(files=files) as (node, plugin, driver):
        ref = await node.claim()
        await plugin.prepare([ref])
        files.fails = full
        assert await plugin.unprepare([ref]) == {ref.uid: ""}
        assert (driver.lit, node.cdi_files) == (set(), [])


@on_loop
async def test_a_cdi_file_that_cannot_be_removed_keeps_the_claim() -> None:
    files = FailingFiles()
    async with led_plugin(files=files) as (node, plugin, _):
        ref = await node.claim()
        await plugin.prepare([ref])
        files.fails = lambda operation, _path: errno.EROFS if operation == "remove" else None
        assert (await plugin.unprepare([ref]))[ref.uid].startswith(f"cannot remove {node.root}/cdi/")
        files.fails = lambda _operation, _path: None
        assert await plugin.unprepare([ref]) == {ref.uid: ""}


@on_loop
async def test_the_claim_is_committed_after_its_cdi_file_is_flushed() -> None:
    files = FailingFiles()
    async with led_plugin(files=files) as (node, plugin, _):
        ref = await node.claim()
        await plugin.prepare([ref])
        assert files.operations == [
            ("flush", f"{ref.uid}.json"),
            ("flush", f"leds.example.com-{ref.uid}.json"),
            ("write", f"{ref.uid}.json"),
        ]
