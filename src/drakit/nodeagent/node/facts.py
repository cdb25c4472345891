"""What the machine has, and what of it pods may use.

In:  the machine, or amounts that were given; reservations.
Out: capacity and allocatable.
"""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from drakit.base.errors import UsageError
from drakit.base.quantity import Quantity, QuantityError

Amounts = Mapping[str, Quantity]
DEFAULT_PODS = 110


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """`nodeInfo`, capacity and addresses of one machine, real or not."""

    capacity: Amounts
    internal_ip: str = "127.0.0.1"
    hostname: str = ""
    info: Mapping[str, str] = field(default_factory=dict)


def this_machine(
    directory: Path, *, hostname: str = "", node_ip: str = "", max_pods: int = DEFAULT_PODS
) -> MachineFacts:
    """`directory` is where the agent keeps its files: its file system is the ephemeral storage.

    `hostname` is by what the node is known, for a machine may have several; without it, the machine's own.
    """
    disk = os.statvfs(directory)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return MachineFacts(
        capacity={
            "cpu": Quantity.of(os.cpu_count() or 1),
            "memory": Quantity.parse(f"{memory // 1024}Ki"),
            "ephemeral-storage": Quantity.parse(f"{disk.f_blocks * disk.f_frsize // 1024}Ki"),
            "pods": Quantity.of(max_pods),
        },
        internal_ip=node_ip or "127.0.0.1",
        hostname=hostname or socket.gethostname(),
        info=_node_info(),
    )


def _node_info() -> dict[str, str]:
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return {
        "machineID": _first_line("/etc/machine-id"),
        "systemUUID": _first_line("/sys/class/dmi/id/product_uuid"),
        "bootID": _first_line("/proc/sys/kernel/random/boot_id"),
        "kernelVersion": platform.release(),
        "osImage": _os_image(),
        "operatingSystem": platform.system().lower(),
        "architecture": machine,
    }


def _first_line(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _os_image() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        return platform.system()


def parse_reserved(text: str, flag: str) -> dict[str, Quantity]:
    """`cpu=500m,memory=1Gi`. Raise UsageError."""
    amounts = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, separator, amount = part.partition("=")
        try:
            amounts[name.strip()] = Quantity.parse(amount.strip())
        except QuantityError as error:
            raise UsageError(f"{flag}: {part!r}: {error}") from None
        if not separator or not name.strip():
            raise UsageError(f"{flag}: {part!r} is not of the form resource=amount")
    return amounts


def allocatable_of(capacity: Amounts, *reserved: Amounts) -> dict[str, Quantity]:
    """Capacity without what is reserved; never below zero."""
    nothing = Quantity.of(0)
    left = dict(capacity)
    for amounts in reserved:
        for name, amount in amounts.items():
            if name in left:
                left[name] = max(left[name] - amount, nothing)
    return left
