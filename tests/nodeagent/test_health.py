"""The health of devices: what is told, when it is overdue, and what is written down of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from drakit.base.clock import FakeClock
from drakit.nodeagent.claims.records import ClaimRecord, ClaimRecords
from drakit.nodeagent.plugins.contract import DeviceAnswer, DeviceHealthReport
from drakit.nodeagent.plugins.health import FILE, HealthReports, shortened
from tests.nodeagent.scene import GPU, Scene, on_loop, scene

HEALTHY: dict[str, Any] = {"pool": "pool", "device": "gpu-0", "health": "HEALTHY", "message": "", "timeout": 3600}


def _health(it: Scene) -> str:
    return str(it.container()["allocatedResourcesStatus"][0]["resources"][0]["health"])


@on_loop
async def test_an_instance_that_cannot_be_reached_does_not_undo_what_another_one_tells() -> None:
    async with scene() as it:
        older = await it.driver(health=True)
        newer = await it.driver(instance="-b", health=True)
        await it.start()
        older.stop_service(stale=True)  # killed: its socket files stay, so that it stays registered
        await it.it.settle()
        newer.send([HEALTHY])
        await it.it.run_for(120)
        assert it.it.agent is not None
        assert it.it.agent.health.of(GPU, "pool", "gpu-0") == ("Healthy", "")


@on_loop
async def test_what_the_last_instance_told_is_forgotten_with_its_stream() -> None:
    async with scene() as it:
        driver = await it.driver(health=True)
        await it.start()
        driver.send([{**HEALTHY, "timeout": 10}])
        await it.it.settle()
        driver.end_streams(None)
        await it.it.run_for(11)
        assert _health(it) == "Unknown"


@pytest.mark.parametrize("said", [0, -5])
@on_loop
async def test_a_report_without_a_timeout_is_overdue_after_half_a_minute(said: int) -> None:
    async with scene() as it:
        driver = await it.driver(health=True)
        await it.start()
        driver.send([{**HEALTHY, "timeout": said}])
        await it.it.run_for(29.9)
        assert _health(it) == "Healthy"
        await it.it.run_for(0.2)
        assert _health(it) == "Unknown"


@on_loop
async def test_a_device_that_a_report_leaves_out_is_unknown_once_its_timeout_is_over() -> None:
    clock = FakeClock()
    reports = HealthReports(clock)
    told: list[Any] = []
    reports.on_change.append(lambda driver, devices: told.append((driver, list(devices))))
    reports.take(GPU, [_report("a", timeout=10), _report("b", timeout=3600)])
    await clock.run_for(9.0)
    reports.take(GPU, [_report("b", timeout=3600)])
    assert reports.of(GPU, "pool", "a") == ("Healthy", "")
    await clock.run_for(1.5)
    assert (reports.of(GPU, "pool", "a"), reports.of(GPU, "pool", "b")) == (("Unknown", ""), ("Healthy", ""))
    assert (GPU, [("pool", "a")]) in told
    await reports.stop()


def _report(device: str, message: str = "", timeout: int = 0) -> DeviceHealthReport:
    return DeviceHealthReport("pool", device, "Healthy", message, timeout)


@on_loop
async def test_a_full_disk_does_not_keep_reports_from_pods(tmp_path: Path) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    reports = HealthReports(FakeClock(), directory=tmp_path, flush=full)
    reports.take(GPU, [_report("a")])
    assert reports.of(GPU, "pool", "a") == ("Healthy", "")
    assert not (tmp_path / FILE).exists()
    await reports.stop()


@on_loop
async def test_an_equal_report_is_not_written_again_and_another_message_is(tmp_path: Path) -> None:
    flushed: list[int] = []
    reports = HealthReports(FakeClock(), directory=tmp_path, flush=flushed.append)
    reports.take(GPU, [_report("a")])
    writes = len(flushed)
    reports.take(GPU, [_report("a")])
    assert len(flushed) == writes
    reports.take(GPU, [_report("a", message="fan")])
    assert len(flushed) == 2 * writes
    (known,) = json.loads((tmp_path / FILE).read_bytes())[GPU]["Devices"].values()
    assert (known["Message"], known["HealthCheckTimeout"]) == ("fan", 30 * 10**9)
    await reports.stop()


def test_a_message_of_more_than_1024_bytes_is_cut_and_says_so_and_no_letter_is_cut_in_two() -> None:
    assert shortened("x" * 1024) == "x" * 1024
    assert shortened("x" * 1025) == "x" * 1021 + "..."
    assert shortened("ü" * 600) == "ü" * 510 + "..."


def test_pods_of_a_device_come_once_each_in_the_order_of_their_claims() -> None:
    """A set of uids would wake them in another order in each process."""
    device = DeviceAnswer("pool", "gpu-0")
    names = [f"{letter}-uid" for letter in "qwertyuiop"]
    records = ClaimRecords(
        ClaimRecord(f"uid-{claim}", claim, "default", dict.fromkeys(pods), {"d": [device]})
        for claim, pods in (("one", names[:6]), ("two", names[4:]))
    )
    assert records.using("d", [("pool", "gpu-0")]) == names
    assert records.using("d", [("pool", "gpu-1")]) == []
