"""Standard attributes of PCI devices, read from sysfs.

In:  a device's address on the PCI bus (`0000:01:00.0`), and where sysfs is.
Out: `resource.kubernetes.io/pciBusID`, `…/pcieRoot` and `…/numaNode`, by which devices of several drivers are matched.
"""

from __future__ import annotations

import re
from pathlib import Path

from drakit.api import DeviceAttribute
from drakit.base.errors import UsageError

SYSFS = Path("/sys")
PCI_BUS_ID = "resource.kubernetes.io/pciBusID"
PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
NUMA_NODE = "resource.kubernetes.io/numaNode"

_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]")
_ROOT = re.compile(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}")


def pci_attributes(address: str, *, sysfs: Path = SYSFS) -> dict[str, DeviceAttribute]:
    """What sysfs knows of the device; an attribute that it does not know is left out. Raise UsageError."""
    if not _ADDRESS.fullmatch(address):
        raise UsageError(f"{address!r} is no address of a PCI device, such as 0000:01:00.0")
    entry = sysfs / "bus" / "pci" / "devices" / address
    if not entry.exists():
        raise UsageError(f"there is no PCI device {address} in {entry.parent}")
    found = {PCI_BUS_ID: DeviceAttribute(string=address)}
    root = next((part for part in entry.resolve().parts if _ROOT.fullmatch(part)), None)
    if root is not None:
        found[PCIE_ROOT] = DeviceAttribute(string=root)
    node = _numa_node(entry)
    if node is not None:
        found[NUMA_NODE] = DeviceAttribute(int_=node)
    return found


def pci_devices(*, sysfs: Path = SYSFS, vendor: int | None = None, device_class: int | None = None) -> list[str]:
    """Addresses of the PCI devices of the machine, in order; of one vendor and class (such as 0x0302), if given."""
    entries = sorted((sysfs / "bus" / "pci" / "devices").glob("*"))
    return [
        entry.name
        for entry in entries
        if (vendor is None or _number(entry / "vendor") == vendor)
        and (device_class is None or _number(entry / "class") >> 8 == device_class)
    ]


def _numa_node(entry: Path) -> int | None:
    """A machine without NUMA says -1."""
    try:
        number = int((entry / "numa_node").read_text())
    except (OSError, ValueError):
        return None
    return number if number >= 0 else None


def _number(path: Path) -> int:
    try:
        return int(path.read_text().strip(), 16)
    except (OSError, ValueError):
        return -1
