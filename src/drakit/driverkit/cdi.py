"""What containers get: Container Device Interface (CDI) edits, and the spec file that carries them to the runtime.

In:  edits per device, as drivers write them.
Out: the bytes of one spec file per claim. Version 0.5.0, which every runtime reads, unless a field needs a newer one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from drakit.base.fields import FieldError, Path, invalid, not_supported, required
from drakit.base.structs import Model

BASE_VERSION = (0, 5, 0)
HOOKS = ("prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop")
NODE_TYPES = ("b", "c", "p", "u")


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


class SpecDevice(Model):
    name: str
    edits: ContainerEdits
    annotations: Mapping[str, str] = {}


def check_edits(edits: ContainerEdits, path: Path) -> Iterator[FieldError]:
    """What a runtime would refuse, before it is in a file that it reads."""
    for name in edits.env:
        if not name or "=" in name:
            yield invalid(path / "env", name, "must be a name without '='")
    for index, node in enumerate(edits.device_nodes):
        yield from _check_node(node, (path / "deviceNodes")[index])
    for index, mount in enumerate(edits.mounts):
        where = (path / "mounts")[index]
        yield from _absolute(mount.host_path, where / "hostPath")
        yield from _absolute(mount.container_path, where / "containerPath")
    for index, hook in enumerate(edits.hooks):
        where = (path / "hooks")[index]
        yield from _absolute(hook.path, where / "path")
        if hook.hook_name not in HOOKS:
            yield not_supported(where / "hookName", hook.hook_name, HOOKS)
    for index, device in enumerate(edits.net_devices):
        if not (device.host_interface_name and device.name):
            yield required((path / "netDevices")[index], "both names are needed")


def _check_node(node: DeviceNode, path: Path) -> Iterator[FieldError]:
    yield from _absolute(node.path, path / "path")
    if node.type is not None and node.type not in NODE_TYPES:
        yield not_supported(path / "type", node.type, NODE_TYPES)
    if set(node.permissions or "") - set("rwm"):
        yield invalid(path / "permissions", node.permissions, "may have r, w and m only")


def _absolute(text: str, path: Path) -> Iterator[FieldError]:
    if not text.startswith("/"):
        yield invalid(path, text, "must be an absolute path")


def is_empty(edits: ContainerEdits) -> bool:
    """Whether a container gets nothing; runtimes refuse such a device."""
    return edits == ContainerEdits()


def vendor_of(driver: str) -> str:
    """The driver's name as CDI's vendor, which must begin with a letter."""
    return driver if driver[:1].isalpha() else f"dra-{driver}"


def qualified(kind: str, name: str) -> str:
    """The id by which a runtime knows a device: `vendor.com/class=name`."""
    return f"{kind}={name}"


def spec_file(kind: str, devices: Iterable[SpecDevice]) -> bytes:
    """The content of a spec file; the same devices give the same bytes."""
    listed = tuple(devices)
    version = max((BASE_VERSION, *map(_version_needed, listed)))
    spec = {
        "cdiVersion": ".".join(map(str, version)),
        "kind": kind,
        "devices": [_device(each) for each in listed],
    }
    return msgspec.json.encode(spec)


def _device(device: SpecDevice) -> dict[str, Any]:
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


def _version_needed(device: SpecDevice) -> tuple[int, int, int]:
    if device.edits.net_devices:
        return (1, 1, 0)
    if device.edits.additional_gids:
        return (0, 7, 0)
    return (0, 6, 0) if device.annotations else BASE_VERSION
