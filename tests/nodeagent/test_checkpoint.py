"""The checkpoint: whole or damaged, never half; and what becomes of pods while the disk is full."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from drakit.nodeagent.claims.checkpoint import FILE, Checkpoint, CheckpointDamaged, decode, encode
from drakit.nodeagent.claims.records import ClaimRecord
from drakit.nodeagent.plugins.contract import DeviceAnswer
from tests.nodeagent.scene import GPU, Scene, on_loop, scene

DEVICE = DeviceAnswer("pool", "gpu-0", ("gpu",), ("gpu.example.com/dev=<a&b>\u2028ü",), "share")
RECORD = ClaimRecord("u1", "claim", "default", pods={"p1": None}, drivers={GPU: [DEVICE], "other": None})


def _wrapped(text: str) -> bytes:
    return json.dumps({"Data": text, "Checksum": zlib.crc32(text.encode(errors="replace"))}).encode()


def test_what_is_written_is_read_again() -> None:
    assert decode(encode([RECORD])) == [RECORD]
    assert decode(encode(None)) == decode(encode([])) == []


def test_a_file_that_breaks_off_anywhere_is_damaged() -> None:
    whole = encode([RECORD])
    for length in range(len(whole)):
        with pytest.raises(CheckpointDamaged):
            decode(whole[:length])


def test_a_file_with_any_byte_changed_is_damaged_or_means_the_same() -> None:
    whole = encode([RECORD])
    for place in range(len(whole)):
        changed = whole[:place] + bytes([whole[place] ^ 0x21]) + whole[place + 1 :]
        try:
            found = decode(changed)
        except CheckpointDamaged:
            continue
        assert found == [RECORD]


@pytest.mark.parametrize(
    "data",
    [
        b"null",
        b"[]",
        b'"text"',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"Data": null, "Checksum": 0}',
        b'{"Data": "", "Checksum": 0}',
        b'{"Data": "\\ud800", "Checksum": 0}',
        _wrapped("[" * 100_000),
        _wrapped("null"),
        _wrapped('{"kind": "Other", "apiVersion": "v2", "ClaimInfoStateList": null}'),
        _wrapped('{"kind": "DRACheckpoint", "apiVersion": "checkpoint.dra.kubelet.k8s.io/v1"}'),
        _wrapped(
            '{"kind": "DRACheckpoint", "apiVersion": "checkpoint.dra.kubelet.k8s.io/v1", "ClaimInfoStateList": 3}'
        ),
    ],
)
def test_anything_else_is_damaged(data: bytes) -> None:
    with pytest.raises(CheckpointDamaged):
        decode(data)


def test_what_a_killed_agent_has_left_beside_is_neither_read_nor_in_the_way(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    checkpoint.save([RECORD])
    (tmp_path / f".{FILE}.tmp").write_bytes(b'{"Data": "hal')
    assert checkpoint.load() == [RECORD]
    checkpoint.save([])
    assert checkpoint.load() == []
    assert [each.name for each in tmp_path.iterdir()] == [FILE]
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


class Disk:
    """Takes writes while `room` is true."""

    def __init__(self, it: Scene) -> None:
        self.room = True
        assert it.it.agent is not None
        it.it.agent.checkpoint._flush = self.flush

    def flush(self, _: int) -> None:
        if not self.room:
            raise OSError(28, "No space left on device")


def _on_disk(it: Scene) -> Any:
    return json.loads(json.loads((it.it.paths.root / FILE).read_bytes())["Data"])["ClaimInfoStateList"]


@on_loop
async def test_on_a_full_disk_no_driver_is_called_and_the_pod_says_why_until_there_is_room() -> None:
    async with scene() as it:
        await it.driver()
        disk = Disk(it)
        disk.room = False
        await it.start()
        await it.it.run_for(30.0)
        assert it.calls() == []
        (told,) = set(it.events("FailedPrepareDynamicResources"))
        assert told.endswith(
            "prepare dynamic resources: checkpoint ResourceClaim state: could not write checkpoint dra_manager_state: "
            "[Errno 28] No space left on device"
        )
        assert it.container()["state"]["waiting"]["message"] == told
        disk.room = True
        await it.it.run_for(10.0)
        assert it.state()["phase"] == "Running"
        assert it.calls() == ["prepare"]


@on_loop
async def test_a_pod_does_not_go_on_a_full_disk_and_leaves_nothing_once_there_is_room() -> None:
    async with scene() as it:
        await it.driver()
        await it.start()
        disk = Disk(it)
        disk.room = False
        await it.delete()
        await it.it.run_for(30.0)
        assert it.it.deleted == []
        assert "No space left on device" in it.events("FailedUnprepareDynamicResources")[0]
        assert len(_on_disk(it)) == 1
        disk.room = True
        await it.it.run_for(10.0)
        assert it.it.deleted == ["pod"]
        assert _on_disk(it) == []


@on_loop
async def test_the_file_has_the_claim_before_the_call_its_devices_after_the_answer_and_nothing_in_the_end() -> None:
    """And the uid of each pod that uses the claim, from its start to its end."""

    def on_disk() -> list[tuple[int, list[str] | None]]:
        """Of each claim of the one driver: how many pods, which devices."""
        found = decode((it.it.paths.root / FILE).read_bytes())
        return [(len(each.pods), _names(each.drivers[GPU])) for each in found]

    async with scene() as it:
        driver = await it.driver()
        driver.delay = 5.0
        await it.pod("one")
        await it.pod("two")
        await it.claim()
        await it.reserve("claim", "one", "two")
        await it.bind("one")
        assert (it.calls(), on_disk()) == (["prepare"], [(1, None)])
        await it.it.run_for(6.0)
        assert on_disk() == [(1, ["gpu-0"])]
        await it.bind("two")
        assert on_disk() == [(2, ["gpu-0"])]
        await it.delete("one")
        await it.it.run_for(3.0)
        assert (it.calls(), on_disk()) == (["prepare"], [(1, ["gpu-0"])])
        await it.delete("two")
        await it.it.run_for(8.0)
        assert (it.calls(), on_disk()) == (["prepare", "unprepare"], [])


def _names(devices: list[DeviceAnswer] | None) -> list[str] | None:
    return None if devices is None else [each.device for each in devices]
