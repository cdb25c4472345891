"""Files of a ConfigMap, Secret, projected or downward API volume, changed all at once.

In:  a directory, and files by relative path with content and mode.
Out: `..data` points to a directory of one moment; every name in the volume is a link through it. A reader sees the old
     files or the new ones, never some of each, and an update keeps the links themselves.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

DATA = "..data"


@dataclass(frozen=True, slots=True)
class VolumeFile:
    content: bytes
    mode: int


def is_safe_path(path: str) -> bool:
    """Whether it stays inside the volume, and keeps clear of the names that start with `..`."""
    parts = PurePosixPath(path).parts
    return bool(parts) and not path.startswith("/") and ".." not in parts and not parts[0].startswith("..")


def write_files(directory: Path, files: Mapping[str, VolumeFile]) -> bool:
    """Make the volume hold exactly these; False when it did already."""
    directory.mkdir(parents=True, exist_ok=True)
    current = directory / DATA
    if current.is_symlink() and _same(current, files):
        return False
    moment = Path(tempfile.mkdtemp(prefix="..", dir=directory))
    moment.chmod(0o755)
    for path, file in files.items():
        target = moment / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
        target.chmod(file.mode)
    _switch(directory, moment)
    _link_names(directory, {PurePosixPath(path).parts[0] for path in files})
    return True


def _switch(directory: Path, moment: Path) -> None:
    """Point `..data` to the new moment by one rename, then remove the old one."""
    current = directory / DATA
    old = current.readlink() if current.is_symlink() else None
    link = directory / "..data_tmp"
    link.unlink(missing_ok=True)
    link.symlink_to(moment.name)
    link.rename(current)
    if old is not None:
        shutil.rmtree(directory / old, ignore_errors=True)


def _link_names(directory: Path, names: set[str]) -> None:
    for name in names:
        link = directory / name
        if not link.is_symlink():
            link.symlink_to(f"{DATA}/{name}")
    for entry in directory.iterdir():
        if not entry.name.startswith("..") and entry.name not in names:
            entry.unlink()


def _same(current: Path, files: Mapping[str, VolumeFile]) -> bool:
    found = {str(path.relative_to(current)): path for path in current.rglob("*") if path.is_file()}
    return found.keys() == files.keys() and all(
        path.read_bytes() == files[name].content and path.stat().st_mode & 0o777 == files[name].mode
        for name, path in found.items()
    )
