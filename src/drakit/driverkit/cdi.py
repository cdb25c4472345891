"""What containers get: Container Device Interface (CDI) edits, and the spec file that carries them to the runtime.

In:  edits per device, as drivers write them.
Out: the bytes of one spec file per claim. Version 0.5.0, which every runtime reads, unless a field needs a newer one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from drakit.base.structs import Model

BASE_VERSION = (0, 5, 0)


class DeviceNode(Model):
    """A device file in the container. Without `host_path`, the file of the same path on the host."""

    path: str
    host_path: str | None = None
    type: str | None = None
    """`c`, `b`, `u` or `p`; what the host's file is by default."""
    major: int | None = None
    minor: int | None = None
    file_mode: int | None = None
    permissions: str | None = None
    """Any of `r`, `w`, `m`; all of them by default."""
    uid: int | None = None
    gid: int | None = None


class Mount(Model):
    host_path: str
    container_path: str
    options: tuple[str, ...] = ("ro", "nosuid", "nodev", "bind")
    type: str | None = None


class Hook(Model):
    """A program that the runtime runs: `hook_name` is `createContainer`, `startContainer`, `poststop`, …"""

    hook_name: str
    path: str
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    timeout: int | None = None


class NetDevice(Model):
    """A network interface of the host that moves into the container (CDI 1.1.0)."""

    host_interface_name: str
    name: str


class ContainerEdits(Model):
    """What a container gets that uses a device."""

    env: Mapping[str, str] = {}
    device_nodes: tuple[DeviceNode, ...] = ()
    mounts: tuple[Mount, ...] = ()
    hooks: tuple[Hook, ...] = ()
    additional_gids: tuple[int, ...] = ()
    net_devices: tuple[NetDevice, ...] = ()


class CdiDevice(Model):
    name: str
    edits: ContainerEdits
    annotations: Mapping[str, str] = {}


def qualified(kind: str, name: str) -> str:
    """The id by which a runtime knows a device: `vendor.com/class=name`."""
    return f"{kind}={name}"


def spec_file(kind: str, devices: Iterable[CdiDevice]) -> bytes:
    """The content of a spec file; the same devices give the same bytes."""
    listed = tuple(devices)
    version = max((BASE_VERSION, *map(_version_needed, listed)))
    spec = {
        "cdiVersion": ".".join(map(str, version)),
        "kind": kind,
        "devices": [_device(each) for each in listed],
    }
    return msgspec.json.encode(spec)


def _device(device: CdiDevice) -> dict[str, Any]:
    annotations = {"annotations": dict(device.annotations)} if device.annotations else {}
    return {"name": device.name, **annotations, "containerEdits": _edits(device.edits)}


def _edits(edits: ContainerEdits) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(edits)
    if edits.env:
        plain["env"] = [f"{name}={value}" for name, value in edits.env.items()]
    for mount, written in zip(edits.mounts, plain.get("mounts", ()), strict=True):
        # Our default options are none of CDI's: they are always written.
        written["options"] = list(mount.options)
    return plain


def _version_needed(device: CdiDevice) -> tuple[int, int, int]:
    if device.edits.net_devices:
        return (1, 1, 0)
    if device.edits.additional_gids:
        return (0, 7, 0)
    return (0, 6, 0) if device.annotations else BASE_VERSION
