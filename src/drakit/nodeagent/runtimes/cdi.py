"""CDI: from device ids to what they change in a container.

In:  spec files (`*.json`, `*.yaml`) of the CDI directories, ids such as `vendor.com/class=name` in order.
Out: edits: environment, device nodes, mounts, hooks. A spec's own edits come once, before those of its first device.

A later directory wins over an earlier one. A device that two files of the same directory provide is a conflict. A
damaged file spoils only its own devices; every error names the id and the file.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from drakit.nodeagent.runtimes.contract import DeviceUnresolved

DEFAULT_DIRECTORIES = (Path("/etc/cdi"), Path("/var/run/cdi"))

_KIND = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?/[A-Za-z]([A-Za-z0-9_-]*[A-Za-z0-9])?")
_DEVICE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?")
_UNSUPPORTED = ("intelRdt", "netDevices")
_HOOKS = ("prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop")


@dataclass(frozen=True, slots=True)
class CdiDeviceNode:
    """A device node in the container: the host's one at `host_path`, or made anew from type and numbers."""

    path: str
    host_path: str
    type: str = ""
    major: int = 0
    minor: int = 0
    file_mode: int | None = None
    permissions: str = "rwm"
    uid: int | None = None
    gid: int | None = None


@dataclass(frozen=True, slots=True)
class CdiMount:
    host_path: str
    container_path: str
    options: tuple[str, ...] = ()
    type: str = ""

    @property
    def read_only(self) -> bool:
        return "ro" in self.options


@dataclass(frozen=True, slots=True)
class CdiHook:
    stage: str
    path: str
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    limit: int = 0
    """Seconds; 0: none."""


@dataclass(slots=True)
class CdiEdits:
    env: dict[str, str] = field(default_factory=dict)
    device_nodes: list[CdiDeviceNode] = field(default_factory=list)
    mounts: list[CdiMount] = field(default_factory=list)
    hooks: list[CdiHook] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)

    def add(self, more: CdiEdits) -> None:
        """Later environment wins; a later node or mount at the same path takes the place of an earlier one."""
        self.env |= more.env
        nodes = {node.path for node in more.device_nodes}
        places = {mount.container_path for mount in more.mounts}
        self.device_nodes = [node for node in self.device_nodes if node.path not in nodes] + more.device_nodes
        self.mounts = [mount for mount in self.mounts if mount.container_path not in places] + more.mounts
        self.hooks += more.hooks
        self.groups += [group for group in more.groups if group not in self.groups]


@dataclass(frozen=True, slots=True)
class _SpecFile:
    path: Path
    priority: int
    kind: str = ""
    edits: CdiEdits = field(default_factory=CdiEdits)
    devices: Mapping[str, CdiEdits] = field(default_factory=dict)
    error: str = ""


class CdiRegistry:
    """The CDI directories of a node. Files are read when a device is asked for, and again only once they changed."""

    def __init__(self, directories: Sequence[Path] = DEFAULT_DIRECTORIES) -> None:
        self._directories = tuple(directories)
        self._read: dict[Path, tuple[tuple[int, int, int], _SpecFile]] = {}

    def resolve(self, ids: Iterable[str]) -> CdiEdits:
        """Raises DeviceUnresolved for the first id that cannot be applied."""
        ids = list(ids)
        edits = CdiEdits()
        if not ids:
            return edits
        specs = self._specs()
        seen: set[Path] = set()
        for device in dict.fromkeys(ids):  # applying a device twice would change nothing but double its hooks
            spec = self._provider(device, specs)
            if spec.path not in seen:
                seen.add(spec.path)
                edits.add(spec.edits)
            edits.add(spec.devices[device])
        return edits

    def _provider(self, device: str, specs: list[_SpecFile]) -> _SpecFile:
        kind, equals, name = device.partition("=")
        if not equals or not _KIND.fullmatch(kind) or not _DEVICE.fullmatch(name):
            raise DeviceUnresolved(f'CDI device "{device}": not of the form vendor.com/class=name')
        providers = [spec for spec in specs if device in spec.devices]
        if not providers:
            raise DeviceUnresolved(f'CDI device "{device}": {self._why_missing(specs)}')
        # Only files of the same directory conflict: a later directory is meant to override an earlier one.
        most = max(spec.priority for spec in providers)
        best = [spec for spec in providers if spec.priority == most]
        if len(best) > 1:
            files = " and ".join(str(spec.path) for spec in best)
            raise DeviceUnresolved(f'CDI device "{device}": conflicting specs {files}')
        return best[0]

    def _why_missing(self, specs: list[_SpecFile]) -> str:
        places = ", ".join(map(str, self._directories))
        broken = [f"{spec.path}: {spec.error}" for spec in specs if spec.error]
        return f"no spec file in {places} provides it" + (f" (not readable: {'; '.join(broken)})" if broken else "")

    def _specs(self) -> list[_SpecFile]:
        found_specs = [
            self._spec(path, priority)
            for priority, directory in enumerate(self._directories)
            for path in _spec_files(directory)
        ]
        specs = [spec for spec in found_specs if spec is not None]
        found = {spec.path for spec in specs}
        self._read = {path: entry for path, entry in self._read.items() if path in found}
        return specs

    def _spec(self, path: Path, priority: int) -> _SpecFile | None:
        try:
            status = path.stat()
            # A driver replaces its spec file by a rename. The new file may have the old one's size and, on a coarse
            # clock, its time; its inode differs.
            state = (status.st_mtime_ns, status.st_size, status.st_ino)
            known = self._read.get(path)
            if known is None or known[0] != state:
                known = self._read[path] = (state, _read_spec(path, priority))
        except FileNotFoundError:  # removed since the directory was listed
            return None
        return known[1]


def _spec_files(directory: Path) -> list[Path]:
    try:
        with os.scandir(directory) as entries:
            names = sorted(entry.name for entry in entries if entry.is_file())
    except OSError:
        return []
    return [directory / name for name in names if name.endswith((".json", ".yaml")) and not name.startswith(".")]


def _read_spec(path: Path, priority: int) -> _SpecFile:
    text = path.read_text(errors="replace")
    try:
        document = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
        return _parse(document, path, priority)
    except (ValueError, yaml.YAMLError) as error:
        return _SpecFile(path, priority, error=f"invalid {path.suffix[1:].upper()}: {error}")
    # A field of the wrong type shows up as any of these, as a spec is read without a schema.
    except (TypeError, AttributeError, KeyError) as error:
        return _SpecFile(path, priority, error=f"not a CDI spec: {error!r}")


def _parse(document: Any, path: Path, priority: int) -> _SpecFile:
    kind = document["kind"]
    if not _KIND.fullmatch(kind):
        raise KeyError(f"kind {kind!r}")
    devices = {}
    for device in document.get("devices") or ():
        name = device["name"]
        if not _DEVICE.fullmatch(name) or f"{kind}={name}" in devices:
            raise KeyError(f"device name {name!r}")
        devices[f"{kind}={name}"] = _edits(device.get("containerEdits") or {})
    return _SpecFile(path, priority, kind, _edits(document.get("containerEdits") or {}), devices)


def _edits(edits: Mapping[str, Any]) -> CdiEdits:
    for key in _UNSUPPORTED:
        if edits.get(key):
            raise KeyError(f"containerEdits.{key} is not supported")
    return CdiEdits(
        env=dict(_variable(entry) for entry in edits.get("env") or ()),
        device_nodes=[_device_node(node) for node in edits.get("deviceNodes") or ()],
        mounts=[_mount(mount) for mount in edits.get("mounts") or ()],
        hooks=[_hook(hook) for hook in edits.get("hooks") or ()],
        groups=[int(group) for group in edits.get("additionalGids") or () if group],
    )


def _variable(entry: str) -> tuple[str, str]:
    name, equals, value = entry.partition("=")
    if not equals or not name:
        raise KeyError(f"env {entry!r}")
    return name, value


def _device_node(node: Mapping[str, Any]) -> CdiDeviceNode:
    return CdiDeviceNode(
        path=node["path"],
        # CDI: without a host path the device has the same path on the node and in the container.
        host_path=node.get("hostPath") or node["path"],
        type=node.get("type") or "",
        major=node.get("major") or 0,
        minor=node.get("minor") or 0,
        file_mode=node.get("fileMode"),
        permissions=node.get("permissions") or "rwm",
        uid=node.get("uid"),
        gid=node.get("gid"),
    )


def _mount(mount: Mapping[str, Any]) -> CdiMount:
    options = tuple(mount.get("options") or ())
    return CdiMount(mount["hostPath"], mount["containerPath"], options, mount.get("type") or "")


def _hook(hook: Mapping[str, Any]) -> CdiHook:
    if hook["hookName"] not in _HOOKS:
        raise KeyError(f"hookName {hook['hookName']!r}")
    args, env = tuple(hook.get("args") or ()), tuple(hook.get("env") or ())
    return CdiHook(hook["hookName"], hook["path"], args, env, hook.get("timeout") or 0)
