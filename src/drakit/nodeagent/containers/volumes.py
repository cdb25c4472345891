"""A pod's volumes as directories of the node.

In:  a Pod document.
Out: the path of each volume. Files of ConfigMaps, Secrets and projections follow their objects on `refresh`;
     `tear_down` removes what belongs to the pod alone.

Every step may be repeated: what is there already stays, so containers that use it go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

from drakit.base.clock import Clock
from drakit.nodeagent.containers.documents import NOTHING, Document, identity, spec_of
from drakit.nodeagent.containers.failures import MountFailed, VolumeRefused
from drakit.nodeagent.containers.fieldrefs import NodeFacts
from drakit.nodeagent.containers.hostpaths import host_path
from drakit.nodeagent.containers.payloads import VolumeFile, write_files
from drakit.nodeagent.containers.projections import Projector
from drakit.nodeagent.containers.sources import ObjectSource

Files = dict[str, VolumeFile]

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - the machine's own tmpfs


class VolumeStore:
    """The volumes of all pods of a node, under `root/<pod uid>/volumes`.

    `memory_root` is a directory of a tmpfs, for `emptyDir` of medium Memory: by default one in /dev/shm; on a machine
    without that, such volumes are on disk. Their size limit is not held.
    """

    def __init__(self, root: Path, *, objects: ObjectSource, clock: Clock, memory_root: Path | None = None) -> None:
        self._root = root
        self._memory_root = memory_root or _shared_memory(root)
        self._objects = objects
        self._clock = clock
        self._projectors: dict[str, Projector] = {}

    async def set_up(self, pod: Document, node: NodeFacts) -> dict[str, Path]:
        """Every volume by its name. Raises MountFailed or VolumeRefused, naming the volume; calls may be repeated."""
        projector = self._projector(pod, node)
        return {volume["name"]: await self._set_up(volume, projector) for volume in spec_of(pod).get("volumes") or ()}

    async def refresh(self, pod: Document, node: NodeFacts) -> bool:
        """Bring what was written up to date; True when a file changed. Raises as `set_up`."""
        projector = self._projector(pod, node)
        changed = False
        for volume in spec_of(pod).get("volumes") or ():
            kind, source = _source(volume)
            if maker := self._files(kind, projector):
                changed |= await self._write(volume, kind, maker, source, projector)
        return changed

    def tear_down(self, pod_uid: str) -> None:
        """Remove the pod's directory: its volumes, and with them its termination messages, which are read by then."""
        self._projectors.pop(pod_uid, None)
        shutil.rmtree(self._root / pod_uid, ignore_errors=True)
        if self._memory_root is not None:
            shutil.rmtree(self._memory_root / pod_uid, ignore_errors=True)
            with contextlib.suppress(OSError):  # not there, or other pods' volumes are in it
                self._memory_root.rmdir()

    def keep_only(self, pod_uids: set[str]) -> None:
        """Remove what an agent that was killed has left of other pods: there may be Secrets in it."""
        for root in (self._root, self._memory_root):
            for directory in root.iterdir() if root is not None and root.is_dir() else ():
                if directory.name not in pod_uids:
                    self.tear_down(directory.name)

    def _projector(self, pod: Document, node: NodeFacts) -> Projector:
        """One per pod, so that tokens outlive a refresh; labels and addresses are those of now."""
        uid = identity(pod).uid
        projector = self._projectors.get(uid)
        if projector is None:
            projector = self._projectors[uid] = Projector(pod, objects=self._objects, node=node, clock=self._clock)
        projector.pod, projector.node = pod, node
        return projector

    async def _set_up(self, volume: Document, projector: Projector) -> Path:
        kind, source = _source(volume)
        uid = identity(projector.pod).uid
        if kind == "emptyDir":
            try:
                return self._empty_dir(uid, volume["name"], source)
            except OSError as error:
                raise _failed(volume["name"], error) from None
        if kind == "hostPath":
            return _host_path(volume["name"], source)
        if maker := self._files(kind, projector):
            await self._write(volume, kind, maker, source, projector)
            return self._directory(uid, kind, volume["name"])
        raise VolumeRefused(f'volume "{volume["name"]}": {kind} volumes are not supported by this node')

    def _files(self, kind: str, projector: Projector) -> Callable[[Document], Awaitable[Files]] | None:
        async def downward(source: Document) -> Files:
            return projector.downward(source)

        makers: dict[str, Callable[[Document], Awaitable[Files]]] = {
            "configMap": projector.config_map,
            "secret": projector.secret,
            "projected": projector.projected,
            "downwardAPI": downward,
        }
        return makers.get(kind)

    async def _write(
        self,
        volume: Document,
        kind: str,
        maker: Callable[[Document], Awaitable[Files]],
        source: Document,
        projector: Projector,
    ) -> bool:
        name = volume["name"]
        try:
            files = await maker(source)
            directory = self._directory(identity(projector.pod).uid, kind, name)
            return await asyncio.to_thread(write_files, directory, files)
        except (MountFailed, OSError) as error:
            raise _failed(name, error) from None
        except VolumeRefused as error:
            raise VolumeRefused(f'volume "{name}": {error}') from None

    def _empty_dir(self, uid: str, name: str, source: Document) -> Path:
        in_memory = source.get("medium") == "Memory" and self._memory_root is not None
        medium = source.get("medium", "")
        if medium not in ("", "Memory"):
            raise VolumeRefused(f'volume "{name}": emptyDir medium {medium} is not supported by this node')
        path = self._directory(uid, "emptyDir", name)
        if in_memory and self._memory_root is not None:
            path = self._memory_root / uid / name
        if not path.exists():
            path.mkdir(parents=True)
            path.chmod(0o777)  # any user of any container may write here, as on every Kubernetes node
        return path

    def _directory(self, uid: str, kind: str, name: str) -> Path:
        return self._root / uid / "volumes" / _PLUGINS[kind] / name


_PLUGINS = {
    "emptyDir": "kubernetes.io~empty-dir",
    "configMap": "kubernetes.io~configmap",
    "secret": "kubernetes.io~secret",
    "projected": "kubernetes.io~projected",
    "downwardAPI": "kubernetes.io~downward-api",
}
"""Directory names as a kubelet has them: people and tools look there."""


def _source(volume: Document) -> tuple[str, Document]:
    """A volume without any source is an emptyDir."""
    for kind, source in volume.items():
        if kind != "name":
            return kind, source or NOTHING
    return "emptyDir", NOTHING


def _host_path(name: str, source: Document) -> Path:
    try:
        return host_path(source.get("path", ""), source.get("type") or "")
    except (MountFailed, OSError) as error:
        raise _failed(name, error) from None
    except VolumeRefused as error:
        raise VolumeRefused(f'volume "{name}": {error}') from None


def _failed(name: str, error: Exception) -> MountFailed:
    return MountFailed(f'MountVolume.SetUp failed for volume "{name}" : {error}')


def _shared_memory(root: Path) -> Path | None:
    """A name for each store: several agents may share the machine."""
    if not os.access(_SHARED_MEMORY, os.W_OK):
        return None
    return _SHARED_MEMORY / f"drakit-{hashlib.sha256(os.fsencode(root.absolute())).hexdigest()[:16]}"
