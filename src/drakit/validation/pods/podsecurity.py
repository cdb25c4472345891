"""As whom a pod's processes run, and what they may do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from drakit.base.fields import FieldError, Path, duplicate, invalid, not_supported, required
from drakit.validation.fields.documentrules import check_words
from drakit.validation.fields.volumesources import check_no_backsteps

_HIGHEST = 2**31 - 1
_RANGE = f"must be between 0 and {_HIGHEST}, inclusive"
_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_SYSCTL = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")
_LONGEST_SYSCTL = 253
_BAD_SYSCTL = rf"must have at most {_LONGEST_SYSCTL} characters and match regex ^{_SYSCTL.pattern}$"


def check_security(context: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    """Of a container."""
    yield from _check_ids(context, path, "runAsUser", "runAsGroup")
    if context.get("procMount") is not None:
        yield from check_words(context["procMount"], ("Default", "Unmasked"), path / "procMount")
    yield from _check_seccomp(context.get("seccompProfile"), path / "seccompProfile")
    yield from _check_apparmor(context.get("appArmorProfile"), path / "appArmorProfile")


def check_pod_security(context: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    yield from _check_ids(context, path, "fsGroup", "runAsUser", "runAsGroup")
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        if not 0 <= group <= _HIGHEST:
            yield invalid((path / "supplementalGroups")[index], group, _RANGE)
    yield from _check_sysctls(context, path / "sysctls")
    if context.get("fsGroupChangePolicy") is not None:
        policies = ("Always", "OnRootMismatch")
        yield from check_words(context["fsGroupChangePolicy"], policies, path / "fsGroupChangePolicy")
    yield from _check_seccomp(context.get("seccompProfile"), path / "seccompProfile")
    yield from _check_apparmor(context.get("appArmorProfile"), path / "appArmorProfile")


def _check_ids(context: Mapping[str, Any], path: Path, *fields: str) -> Iterator[FieldError]:
    for field in fields:
        value = context.get(field)
        if value is not None and not 0 <= value <= _HIGHEST:
            yield invalid(path / field, value, _RANGE)


def _check_sysctls(context: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, setting in enumerate(context.get("sysctls") or ()):
        name, where = setting.get("name") or "", path[index] / "name"
        if not name:
            yield required(where)
        elif len(name) > _LONGEST_SYSCTL or not _SYSCTL.fullmatch(name):
            yield invalid(where, name, _BAD_SYSCTL)
        elif name in seen:
            yield duplicate(where, name)
        seen.add(name)


def _check_seccomp(profile: Mapping[str, Any] | None, path: Path) -> Iterator[FieldError]:
    if profile is None:
        return
    kind, file = profile.get("type") or "", profile.get("localhostProfile")
    if not kind:
        yield required(path / "type", "type is required when seccompProfile is set")
    elif kind not in _PROFILES:
        yield not_supported(path / "type", kind, _PROFILES)
    if kind != "Localhost" and file is not None:
        shown = {"Type": kind, "LocalhostProfile": file}
        yield invalid(path / "localhostProfile", shown, "can only be set when seccomp type is Localhost")
    elif kind == "Localhost" and file is None:
        yield required(path / "localhostProfile", "must be set when seccomp type is Localhost")
    elif file is not None:
        if file.startswith("/"):
            yield invalid(path / "localhostProfile", file, "must be a relative path")
        yield from check_no_backsteps(file, path / "localhostProfile")


def _check_apparmor(profile: Mapping[str, Any] | None, path: Path) -> Iterator[FieldError]:
    if profile is None:
        return
    kind, name = profile.get("type") or "", profile.get("localhostProfile")
    if not kind:
        yield required(path / "type", "type is required when appArmorProfile is set")
    elif kind not in _PROFILES:
        yield not_supported(path / "type", kind, _PROFILES)
    elif kind == "Localhost" and not name:
        yield required(path / "localhostProfile", "must be set when AppArmor type is Localhost")
    elif kind != "Localhost" and name is not None:
        detail = "can only be set when AppArmor type is Localhost"
        yield invalid(path / "localhostProfile", name, detail)
