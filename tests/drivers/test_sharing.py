"""What is given out in shares: CPUs, addresses, ports of a fabric."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest

from drakit.base.errors import Unavailable, UsageError
from drakit.driverkit import BindingFailed, Driver
from drakit.drivers import cpu, fabric, nic
from drakit.drivers.cpu import as_ranges
from drakit.drivers.leases import Leases
from tests.drivers.claims import NODE, allocated, amount, prepared, unprepare

D = TypeVar("D", bound=Driver)


def on_node(driver: D) -> D:
    driver.node_name = NODE
    return driver


def cpuset(driver: cpu.CpuDriver, uid: str, number: int, device: str = "cpudevnuma001") -> str:
    claim = allocated(driver, uid, device, share_id=uid, consumed_capacity=amount(number, cpu.CPU))
    (ready,) = asyncio.run(prepared(driver, claim))
    assert ready.edits.env == {f"DRA_CPUSET_{device.upper()}": ready.data["cpuset"]}
    return str(ready.data["cpuset"])


def test_claims_have_cpus_of_their_own_and_of_their_numa_node(tmp_path: Path) -> None:
    driver = on_node(cpu.CpuDriver(directory=str(tmp_path)))
    assert cpuset(driver, "a", 4) == "16-19"
    assert cpuset(driver, "b", 10) == "20-29"
    assert cpuset(driver, "c", 16, device="cpudevnuma000") == "0-15"


def test_cpus_stay_with_their_claim_when_the_driver_starts_again(tmp_path: Path) -> None:
    assert cpuset(on_node(cpu.CpuDriver(directory=str(tmp_path))), "a", 4) == "16-19"
    again = on_node(cpu.CpuDriver(directory=str(tmp_path)))
    assert cpuset(again, "b", 2) == "20-21"
    assert cpuset(again, "a", 4) == "16-19"


def test_more_cpus_than_are_free_are_refused_and_none_is_kept(tmp_path: Path) -> None:
    driver = on_node(cpu.CpuDriver(directory=str(tmp_path)))
    cpuset(driver, "a", 12)
    with pytest.raises(Unavailable, match="6 are wanted, and only 4 of 16 are free"):
        cpuset(driver, "b", 6)
    assert cpuset(driver, "c", 4) == "28-31"


def test_cpus_come_back_when_their_claim_is_done(tmp_path: Path) -> None:
    driver = on_node(cpu.CpuDriver(directory=str(tmp_path)))
    cpuset(driver, "a", 2)
    cpuset(driver, "b", 2)
    asyncio.run(unprepare(driver, allocated(driver, "a")))
    assert cpuset(driver, "c", 3) == "16-17,20"


def test_a_set_of_cpus_is_written_as_the_kernel_writes_it() -> None:
    assert as_ranges([8, 1, 0, 3, 2, 11, 10]) == "0-3,8,10-11"
    assert as_ranges([]) == ""


def test_each_share_of_an_interface_has_an_address_and_its_rate(tmp_path: Path) -> None:
    driver = on_node(nic.NicDriver(directory=str(tmp_path), subnet="10.9.0.0/24"))
    found = []
    for uid in ("a", "b"):
        claim = allocated(driver, uid, "nic-0", share_id=uid, consumed_capacity=amount(10**9, "egressBandwidth"))
        (ready,) = asyncio.run(prepared(driver, claim))
        assert ready.edits.env["NET_DEVICE_0_EGRESS_RATE"] == "1G"
        assert ready.network_data is not None
        found.append((ready.network_data.ips, ready.network_data.hardware_address))
    assert found == [(("10.9.0.2/24",), "02:00:0a:09:00:02"), (("10.9.0.3/24",), "02:00:0a:09:00:03")]


def test_an_interface_that_cannot_be_attached_sends_the_pod_elsewhere(tmp_path: Path) -> None:
    driver = on_node(nic.NicDriver(directory=str(tmp_path)))
    claim = allocated(driver, "a", "nic-0")
    asyncio.run(driver.bind(claim, claim.devices[0]))
    (tmp_path / "attach-failed").write_text("nic-0\n")
    with pytest.raises(BindingFailed, match="nic-0 cannot be attached"):
        asyncio.run(driver.bind(claim, claim.devices[0]))


def test_a_subnet_that_is_none_is_told() -> None:
    with pytest.raises(UsageError, match="subnet: "):
        nic.NicDriver(subnet="ten")


def test_an_accelerator_is_attached_for_the_newest_claim_and_detached_by_its_own(tmp_path: Path) -> None:
    driver = on_node(fabric.FabricDriver(directory=str(tmp_path)))
    port = tmp_path / "ports" / "accelerator-0"
    old, new = allocated(driver, "old", "accelerator-0"), allocated(driver, "new", "accelerator-0")
    asyncio.run(driver.bind(old, old.devices[0]))
    asyncio.run(prepared(driver, new))
    asyncio.run(unprepare(driver, old))
    assert port.read_text() == "new"
    asyncio.run(unprepare(driver, new))
    assert not port.exists()


def test_a_broken_port_sends_the_pod_elsewhere(tmp_path: Path) -> None:
    driver = on_node(fabric.FabricDriver(directory=str(tmp_path)))
    (tmp_path / "broken").write_text("accelerator-0")
    claim = allocated(driver, "a", "accelerator-0")
    with pytest.raises(BindingFailed, match="cannot attach accelerator-0"):
        asyncio.run(driver.bind(claim, claim.devices[0]))


def test_nothing_is_held_by_two(tmp_path: Path) -> None:
    names = [str(number) for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda owner: Leases(tmp_path).take(names, 5, f"claim-{owner}"), range(8)))
    assert sorted((name for each in taken for name in each), key=int) == names


def test_a_part_of_an_owner_goes_with_it_and_a_namesake_does_not(tmp_path: Path) -> None:
    leases = Leases(tmp_path)
    leases.take(["0", "1", "2"], 1, "claim/share")
    leases.take(["1", "2"], 1, "claim-2")
    leases.release("claim")
    assert (leases.owner("0"), leases.owner("1")) == ("", "claim-2")
