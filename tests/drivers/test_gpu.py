"""The gpu driver: partitions, device files, configuration, health."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from drakit.base.clock import FakeClock
from drakit.base.errors import InvalidObject
from drakit.driverkit import HealthState
from drakit.drivers.gpu import GpuDriver
from tests.drivers.claims import NODE, allocated, prepared, unprepare

CONFIG = {"apiVersion": "gpu.resource.example.com/v1alpha1", "kind": "GpuConfig"}


def driver_in(directory: Path, **settings: Any) -> GpuDriver:
    driver = GpuDriver(directory=str(directory), **settings)
    driver.node_name = NODE
    return driver


def files_in(directory: Path) -> dict[str, str]:
    return {each.name: each.read_text() for each in (directory / "dev").iterdir()}


def test_a_container_gets_the_file_of_its_card_and_variables_that_name_it(tmp_path: Path) -> None:
    driver = driver_in(tmp_path)
    (device,) = asyncio.run(prepared(driver, allocated(driver, "claim-1", "gpu-1")))
    (mount,) = device.edits.mounts
    assert (mount.host_path, mount.container_path) == (str(tmp_path / "dev" / "gpu-1"), "/dev/gpu-1")
    assert device.edits.env["GPU_DEVICE_0"] == "gpu-1"


def test_the_file_of_a_partition_goes_with_its_claim_and_that_of_a_card_stays(tmp_path: Path) -> None:
    driver = driver_in(tmp_path)
    claim = allocated(driver, "claim-1", "gpu-0-half-0", "gpu-1")
    asyncio.run(prepared(driver, claim))
    assert files_in(tmp_path) == {"gpu-0-half-0": "claim-1", "gpu-1": "claim-1"}
    asyncio.run(unprepare(driver, claim))
    assert files_in(tmp_path) == {"gpu-1": ""}


def test_another_claims_partition_is_left_alone(tmp_path: Path) -> None:
    driver = driver_in(tmp_path)
    first, second = allocated(driver, "claim-1", "gpu-0-half-0"), allocated(driver, "claim-2", "gpu-0-half-2")
    asyncio.run(prepared(driver, first))
    asyncio.run(prepared(driver, second))
    asyncio.run(unprepare(driver, first))
    assert files_in(tmp_path) == {"gpu-0-half-2": "claim-2"}


def test_who_has_admin_access_looks_on_and_takes_nothing(tmp_path: Path) -> None:
    driver = driver_in(tmp_path)
    asyncio.run(prepared(driver, allocated(driver, "user", "gpu-1")))
    admin = allocated(driver, "admin", "gpu-1", admin_access=True)
    (device,) = asyncio.run(prepared(driver, admin))
    assert device.edits.mounts[0].options[0] == "ro"
    assert device.edits.env["DRA_ADMIN_ACCESS"] == "true"
    asyncio.run(unprepare(driver, admin))
    assert files_in(tmp_path) == {"gpu-1": "user"}


def test_configuration_reaches_the_container(tmp_path: Path) -> None:
    driver = driver_in(tmp_path)
    config = {**CONFIG, "sharing": {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}}}
    (device,) = asyncio.run(prepared(driver, allocated(driver, "claim-1", "gpu-1", config=config)))
    assert device.edits.env["GPU_DEVICE_0_TIMESLICE_INTERVAL"] == "Long"


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({**CONFIG, "sharing": {"strategy": "Fair"}}, "sharing.strategy"),
        ({**CONFIG, "shared": True}, "unknown field"),
        ({**CONFIG, "powerLimitWatts": 300}, "may only be set in a DeviceClass"),
    ],
)
def test_configuration_that_makes_no_sense_is_told_with_its_field(tmp_path: Path, config: Any, said: str) -> None:
    with pytest.raises(InvalidObject, match=said):
        allocated(driver_in(tmp_path), "claim-1", "gpu-1", config=config)


def test_a_class_may_set_what_a_claim_may_not(tmp_path: Path) -> None:
    config = {**CONFIG, "powerLimitWatts": 300}
    claim = allocated(driver_in(tmp_path), "claim-1", "gpu-1", config=config, source="FromClass")
    assert claim.devices[0].configs


def tainted(driver: GpuDriver) -> dict[str, str]:
    return {
        device.name: device.taints[0].effect for pool in driver.devices() for device in pool.devices if device.taints
    }


async def sick_and_well(driver: GpuDriver, clock: FakeClock, control: Callable[[str], object]) -> list[dict[str, str]]:
    """What the stream tells, and the taints, as a card becomes sick and well again."""
    told = []
    stream = driver.health()
    for text in ("", "gpu-0 overheated\n", ""):
        control(text)
        message = asyncio.ensure_future(anext(stream))
        await clock.run_for(2.0)
        reports = await message
        told.append({each.device: each.message for each in reports if each.state is HealthState.UNHEALTHY})
        assert tainted(driver).keys() == told[-1].keys()
    await stream.aclose()  # type: ignore[attr-defined]
    return told


def test_a_sick_card_takes_its_partitions_with_it_until_it_is_well(tmp_path: Path) -> None:
    clock = FakeClock()
    driver = driver_in(tmp_path, clock=clock)
    first, second, third = asyncio.run(sick_and_well(driver, clock, (tmp_path / "health").write_text))
    assert (first, third) == ({}, {})
    assert second.keys() == {"gpu-0", *(f"gpu-0-half-{n}" for n in (0, 2)), *(f"gpu-0-quarter-{n}" for n in range(4))}
    assert set(second.values()) == {"overheated"}
