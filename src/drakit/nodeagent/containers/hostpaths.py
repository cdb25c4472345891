"""hostPath volumes: a file or directory of the node, checked and made as its `type` says."""

from __future__ import annotations

import stat
from pathlib import Path

from drakit.nodeagent.containers.failures import MountFailed, VolumeRefused

_CHECKS = {
    "Directory": (stat.S_ISDIR, "a directory"),
    "File": (stat.S_ISREG, "a file"),
    "Socket": (stat.S_ISSOCK, "a socket file"),
    "CharDevice": (stat.S_ISCHR, "a character device"),
    "BlockDevice": (stat.S_ISBLK, "a block device"),
}


def host_path(path: str, kind: str) -> Path:
    """The path, once it is what `kind` asks for."""
    target = Path(path)
    if not target.is_absolute() or ".." in target.parts:
        raise VolumeRefused(f'hostPath "{path}" must be absolute and without ".."')
    if kind == "DirectoryOrCreate" and not target.exists():
        target.mkdir(parents=True, mode=0o755)
    elif kind == "FileOrCreate" and not target.exists():
        target.touch(mode=0o644)
    _check(target, kind.removesuffix("OrCreate"))
    return target


def _check(target: Path, kind: str) -> None:
    if not kind:
        # The kubelet lets a missing path of no type be made as a directory by the runtime.
        if not target.exists():
            target.mkdir(parents=True, mode=0o755)
        return
    if kind not in _CHECKS:
        raise VolumeRefused(f"hostPath type {kind} is not known")
    is_kind, name = _CHECKS[kind]
    if not target.exists() or not is_kind(target.stat().st_mode):
        raise MountFailed(f"hostPath type check failed: {target} is not {name}")
