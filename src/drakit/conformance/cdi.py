"""CDI spec files: what is in a directory, and what is wrong with it.

In:  a directory of JSON and YAML files, as container runtimes read it.
Out: devices by their id, and every rule of the CDI specification that a file breaks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

SUFFIXES = (".json", ".yaml", ".yml")
_VERSIONS = ("0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0")
_KIND = re.compile(r"[A-Za-z]([A-Za-z0-9._-]*[A-Za-z0-9])?/[A-Za-z]([A-Za-z0-9_-]*[A-Za-z0-9])?")
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?")
_EDITS = {"env", "deviceNodes", "mounts", "hooks", "intelRdt", "additionalGids", "netDevices"}
_HOOKS = ("prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop")
_SINCE = {"additionalGids": "0.7.0", "intelRdt": "0.7.0", "netDevices": "1.1.0", "annotations": "0.6.0"}
"""Fields that need a version newer than the first."""


class CdiProblem(msgspec.Struct, frozen=True):
    file: str
    field: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file}: {self.field}: {self.reason}" if self.field else f"{self.file}: {self.reason}"


class CdiDevice(msgspec.Struct, frozen=True):
    """What a container gets with one id: the edits of its file and of the device."""

    id: str
    file: str
    edits: tuple[Mapping[str, Any], ...]

    def mounts(self) -> Iterator[Mapping[str, Any]]:
        for each in self.edits:
            yield from each.get("mounts") or ()


class CdiDirectory(msgspec.Struct, frozen=True):
    """`devices` are those of every file that could be read, whatever else is wrong with it."""

    devices: tuple[CdiDevice, ...] = ()
    problems: tuple[CdiProblem, ...] = ()

    def find(self, identifier: str) -> tuple[CdiDevice, ...]:
        return tuple(each for each in self.devices if each.id == identifier)


def spec_files(directory: Path) -> dict[str, bytes]:
    """Every file by its name, whether a runtime would read it or not."""
    return {each.name: each.read_bytes() for each in sorted(directory.iterdir()) if each.is_file()}


def read_directory(directory: Path) -> CdiDirectory:
    devices: list[CdiDevice] = []
    problems: list[CdiProblem] = []
    for name, data in spec_files(directory).items():
        if not name.endswith(SUFFIXES):
            continue
        spec = _parse(name, data)
        if isinstance(spec, CdiProblem):
            problems.append(spec)
            continue
        problems += _check_spec(name, spec)
        devices += _devices(name, spec)
    return CdiDirectory(tuple(devices), tuple(problems))


def _parse(name: str, data: bytes) -> dict[str, Any] | CdiProblem:
    try:
        spec = msgspec.json.decode(data) if name.endswith(".json") else yaml.safe_load(data)
    except (msgspec.DecodeError, yaml.YAMLError) as error:
        return CdiProblem(name, "", f"cannot be read: {error}")
    return spec if isinstance(spec, dict) else CdiProblem(name, "", "is no object")


def _devices(name: str, spec: Mapping[str, Any]) -> Iterator[CdiDevice]:
    devices = spec.get("devices")
    for device in devices if isinstance(devices, list) else ():
        if isinstance(device, dict):
            edits = [
                each for each in (spec.get("containerEdits"), device.get("containerEdits")) if isinstance(each, dict)
            ]
            yield CdiDevice(f"{spec.get('kind')}={device.get('name')}", name, tuple(edits))


def _check_spec(name: str, spec: Mapping[str, Any]) -> Iterator[CdiProblem]:
    version = spec.get("cdiVersion")
    # Nothing else can be judged without knowing the version.
    if version not in _VERSIONS:
        yield CdiProblem(name, "cdiVersion", f"is {version!r}, none of {', '.join(_VERSIONS)}")
        return
    kind = spec.get("kind")
    if not (isinstance(kind, str) and _KIND.fullmatch(kind)):
        yield CdiProblem(name, "kind", f"is {kind!r}, not of the form vendor.example.com/class")
    for field in spec.keys() - {"cdiVersion", "kind", "devices", "containerEdits", "annotations"}:
        yield CdiProblem(name, field, "is no field of a CDI specification")
    yield from _check_devices(name, spec.get("devices"), version)
    yield from _check_edits(name, "containerEdits", spec.get("containerEdits"), version)


def _check_devices(file: str, devices: Any, version: str) -> Iterator[CdiProblem]:
    if not isinstance(devices, list) or not devices:
        yield CdiProblem(file, "devices", "has no device")
        return
    seen: set[str] = set()
    for index, device in enumerate(devices):
        where = f"devices[{index}]"
        name = device.get("name") if isinstance(device, dict) else None
        if not (isinstance(name, str) and _NAME.fullmatch(name)):
            yield CdiProblem(file, f"{where}.name", f"is {name!r}, which is no device name")
            continue
        if name in seen:
            yield CdiProblem(file, f"{where}.name", f"{name!r} is there twice")
        seen.add(name)
        yield from _check_edits(file, f"{where}.containerEdits", device.get("containerEdits"), version)


def _check_edits(file: str, where: str, edits: Any, version: str) -> Iterator[CdiProblem]:
    if edits is None:
        return
    if not isinstance(edits, dict):
        yield CdiProblem(file, where, "is no object")
        return
    for field in sorted(edits.keys() - _EDITS):
        yield CdiProblem(file, f"{where}.{field}", "is no edit that a runtime knows")
    for field in sorted(edits.keys() & _SINCE.keys()):
        if _VERSIONS.index(version) < _VERSIONS.index(_SINCE[field]):
            yield CdiProblem(file, f"{where}.{field}", f"needs cdiVersion {_SINCE[field]}; the file says {version}")
    for index, text in enumerate(edits.get("env") or ()):
        if not (isinstance(text, str) and text.partition("=")[0] and "=" in text):
            yield CdiProblem(file, f"{where}.env[{index}]", f"is {text!r}, not of the form NAME=value")
    yield from _check_paths(file, f"{where}.deviceNodes", edits.get("deviceNodes"), ("path",))
    yield from _check_paths(file, f"{where}.mounts", edits.get("mounts"), ("hostPath", "containerPath"))
    yield from _check_paths(file, f"{where}.hooks", edits.get("hooks"), ("path",))
    for index, hook in enumerate(edits.get("hooks") or ()):
        if isinstance(hook, dict) and hook.get("hookName") not in _HOOKS:
            yield CdiProblem(file, f"{where}.hooks[{index}].hookName", f"is none of {', '.join(_HOOKS)}")


def _check_paths(file: str, where: str, entries: Any, fields: tuple[str, ...]) -> Iterator[CdiProblem]:
    for index, entry in enumerate(entries or ()):
        for field in fields:
            value = entry.get(field) if isinstance(entry, dict) else None
            if not (isinstance(value, str) and value.startswith("/")):
                yield CdiProblem(file, f"{where}[{index}].{field}", f"is {value!r}, no absolute path")
