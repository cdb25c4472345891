"""Images as directories of the node: a root file system, or an OCI layout that is unpacked once.

In:  an image's name as a pod has it.
Out: the path of its root file system and what it says about its process (entry point, environment, user).

A name is looked up in a table first, then below a directory of images: as it is, then without its tag. Nothing is ever
pulled.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from drakit.nodeagent.runtimes.contract import ImageUnavailable, RuntimeRefusal

_INDEXES = ("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")
_REF_NAME = "org.opencontainers.image.ref.name"
_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class LocalImage:
    root: Path
    reference: str
    """Digest of an OCI image's manifest, or the path of a plain root file system."""
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    working_dir: str = ""
    user: str = ""
    stop_signal: str = ""


class ImageStore:
    """`table`: directories by image name. `root`: where other names are looked up. `cache`: for unpacked layouts."""

    def __init__(self, cache: Path, *, table: Mapping[str, Path] | None = None, root: Path | None = None) -> None:
        self._cache = cache
        self._table = dict(table or {})
        self._root = root
        self._known: dict[str, LocalImage] = {}

    def find(self, name: str) -> LocalImage:
        """Raises ImageUnavailable for a name that no directory has, RuntimeRefusal for a directory that is no image."""
        known = self._known.get(name)
        # Somebody may have removed the directory since.
        if known is not None and known.root.is_dir():
            return known
        path, tag = self._locate(name)
        is_layout = (path / "oci-layout").is_file()
        image = self._from_layout(path, name, tag) if is_layout else LocalImage(path, str(path))
        self._known[name] = image
        return image

    def _locate(self, name: str) -> tuple[Path, str]:
        bare, tag = split_tag(name)
        for candidate in (name, bare):
            if (path := self._table.get(candidate)) is not None and path.is_dir():
                return path, tag
        if self._root is not None and not PurePosixPath(name).is_absolute() and ".." not in PurePosixPath(name).parts:
            for candidate in (name, bare):
                if candidate and (self._root / candidate).is_dir():
                    return self._root / candidate, tag
        raise ImageUnavailable(f'image "{name}" is not on this node: no directory provides it, and nothing is pulled')

    def _from_layout(self, path: Path, name: str, tag: str) -> LocalImage:
        try:
            digest, manifest = _manifest(path, tag)
            settings = (_blob(path, manifest["config"]["digest"]).get("config")) or {}
            target = self._cache / digest.replace(":", "-")
            if not target.is_dir():
                _unpack(path, [layer["digest"] for layer in manifest["layers"]], target)
        except (OSError, ValueError, KeyError, TypeError, tarfile.TarError) as error:
            raise RuntimeRefusal(f'image "{name}": the OCI layout {path} cannot be used: {error!r}') from None
        return LocalImage(
            root=target,
            reference=digest,
            entrypoint=tuple(settings.get("Entrypoint") or ()),
            command=tuple(settings.get("Cmd") or ()),
            env=tuple(settings.get("Env") or ()),
            working_dir=settings.get("WorkingDir") or "",
            user=settings.get("User") or "",
            stop_signal=settings.get("StopSignal") or "",
        )


def split_tag(name: str) -> tuple[str, str]:
    """`registry:5000/a/b:tag@digest` without digest and tag, and its tag."""
    name = name.partition("@")[0]
    bare, colon, tag = name.rpartition(":")
    return (bare, tag) if colon and "/" not in tag else (name, "")


def _manifest(layout: Path, tag: str) -> tuple[str, dict[str, Any]]:
    """The manifest of the tag, or the only one; from a list, that of this machine's architecture."""
    entries = json.loads((layout / "index.json").read_bytes())["manifests"]
    named = [entry for entry in entries if tag and (entry.get("annotations") or {}).get(_REF_NAME) == tag]
    entry = (named or entries)[0]
    while entry.get("mediaType") in _INDEXES:
        machine = _ARCHITECTURES.get(os.uname().machine, os.uname().machine)
        listed = _blob(layout, entry["digest"])["manifests"]
        entry = next(item for item in listed if (item.get("platform") or {}).get("architecture", machine) == machine)
    return entry["digest"], _blob(layout, entry["digest"])


def _blob_path(layout: Path, digest: str) -> Path:
    algorithm, _, value = digest.partition(":")
    # The digest becomes a path: a damaged index must not lead out of the layout.
    if not value.isalnum() or not algorithm.isalnum():
        raise ValueError(f"digest {digest!r}")
    return layout / "blobs" / algorithm / value


def _blob(layout: Path, digest: str) -> dict[str, Any]:
    content = _blob_path(layout, digest).read_bytes()
    algorithm, _, value = digest.partition(":")
    if hashlib.new(algorithm, content).hexdigest() != value:
        raise ValueError(f"blob {digest} is damaged")
    document: dict[str, Any] = json.loads(content)
    return document


def _unpack(layout: Path, layers: list[str], target: Path) -> None:
    """All layers beside the target, then one rename: a half-unpacked image is never used."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=".unpack-", dir=target.parent))
    try:
        for digest in layers:
            with tarfile.open(_blob_path(layout, digest)) as archive:
                _apply(archive, temporary)
        # mkdtemp makes a directory for its owner alone, but a container may run as another user.
        temporary.chmod(0o755)
        temporary.rename(target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _apply(archive: tarfile.TarFile, root: Path) -> None:
    for member in archive:
        path = PurePosixPath(member.name)
        # OCI whiteouts: an opaque marker hides all that lower layers have in its directory, any other hides one entry.
        if path.name == _OPAQUE:
            _remove_entries(root / path.parent)
        elif path.name.startswith(_WHITEOUT):
            _remove(root / path.parent / path.name.removeprefix(_WHITEOUT))
        else:
            place = root / path
            # A layer may replace a directory or a link by a file; extracting would write through the link.
            if not member.isdir() and (place.is_symlink() or place.exists()):
                _remove(place)
            # The filter refuses whatever would leave the root, by its name or through a link.
            archive.extract(member, root, numeric_owner=True, filter="tar")


def _remove_entries(directory: Path) -> None:
    if directory.is_dir() and not directory.is_symlink():
        for entry in directory.iterdir():
            _remove(entry)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
