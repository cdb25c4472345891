"""Standard attributes, read from a tree that looks like sysfs."""

from __future__ import annotations

from pathlib import Path

import pytest

from drakit.api import DeviceAttribute
from drakit.base.errors import UsageError
from drakit.driverkit.sysfs import pci_attributes, pci_devices


def pci_device(sysfs: Path, address: str, behind: str, **files: str) -> None:
    real = sysfs / "devices" / behind / address
    real.mkdir(parents=True)
    for name, content in files.items():
        (real / name).write_text(content + "\n")
    listed = sysfs / "bus" / "pci" / "devices"
    listed.mkdir(parents=True, exist_ok=True)
    (listed / address).symlink_to(real)


def test_a_device_behind_bridges_has_the_root_at_the_top(tmp_path: Path) -> None:
    pci_device(tmp_path, "0000:03:00.0", "pci0000:00/0000:00:01.0/0000:02:00.0", numa_node="1")
    assert pci_attributes("0000:03:00.0", sysfs=tmp_path) == {
        "resource.kubernetes.io/pciBusID": DeviceAttribute(string="0000:03:00.0"),
        "resource.kubernetes.io/pcieRoot": DeviceAttribute(string="pci0000:00"),
        "resource.kubernetes.io/numaNode": DeviceAttribute(int_=1),
    }


@pytest.mark.parametrize("files", [{}, {"numa_node": "-1"}, {"numa_node": "none"}])
def test_a_machine_without_numa_nodes_says_nothing_of_them(tmp_path: Path, files: dict[str, str]) -> None:
    pci_device(tmp_path, "0000:03:00.0", "pci0000:00", **files)
    assert "resource.kubernetes.io/numaNode" not in pci_attributes("0000:03:00.0", sysfs=tmp_path)


def test_devices_are_found_by_vendor_and_class(tmp_path: Path) -> None:
    pci_device(tmp_path, "0000:03:00.0", "pci0000:00", vendor="0x10de", **{"class": "0x030200"})
    pci_device(tmp_path, "0000:04:00.0", "pci0000:00", vendor="0x8086", **{"class": "0x020000"})
    assert pci_devices(sysfs=tmp_path) == ["0000:03:00.0", "0000:04:00.0"]
    assert pci_devices(sysfs=tmp_path, vendor=0x10DE) == ["0000:03:00.0"]
    assert pci_devices(sysfs=tmp_path, device_class=0x0200) == ["0000:04:00.0"]


@pytest.mark.parametrize("address", ["", "gpu0", "../../etc", "0000:03:00.9"])
def test_what_is_no_address_is_an_error(tmp_path: Path, address: str) -> None:
    with pytest.raises(UsageError, match="no address of a PCI device"):
        pci_attributes(address, sysfs=tmp_path)


def test_a_device_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no PCI device"):
        pci_attributes("0000:09:00.0", sysfs=tmp_path)
