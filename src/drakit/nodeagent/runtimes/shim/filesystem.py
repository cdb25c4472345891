"""What a process sees of the node's files: mounts and device nodes of its own, without touching the node's.

A mount needs a place. Where the node has none, the nearest directory above is covered with an empty file system in
which all its entries show up again, and the place is made there. The root itself cannot be covered: a new
root is built from its entries, and the process changes to it.
"""

from __future__ import annotations

import os
import stat

from drakit.nodeagent.runtimes.shim import kernel

_LOCKED = ((os.ST_NOSUID, kernel.NO_SUID), (os.ST_NODEV, kernel.NO_DEV), (os.ST_NOEXEC, kernel.NO_EXEC))
_PROPAGATION = {"HostToContainer": kernel.SLAVE, "Bidirectional": kernel.SHARED}


class FileView:
    """The file system of a process that has a mount namespace of its own.

    `scratch` is an empty directory on which a new root may be mounted.
    """

    def __init__(self, scratch: str) -> None:
        self._scratch = scratch
        self._mounted: list[str] = []
        self._covered: set[str] = set()

    def apply(self, mounts: list[dict[str, object]], devices: list[dict[str, object]]) -> None:
        """Mounts whose paths are shorter come first: one may be within another."""
        places = [str(entry["target"]) for entry in mounts] + [str(entry["path"]) for entry in devices]
        # Opened before anything is mounted: a mount may hide the source of a later one.
        sources = {str(entry["source"]): self._open(str(entry["source"])) for entry in mounts}
        if any(not os.path.lexists(place) for place in places):
            self._new_root()
        for entry in sorted(mounts, key=lambda entry: str(entry["target"]).count("/")):
            self._bind(sources[str(entry["source"])], entry)
        for device in devices:
            self._device(device)
        for descriptor in sources.values():
            os.close(descriptor)

    def _open(self, source: str) -> int:
        """Held open by descriptor: the path may be covered by the time it is mounted."""
        return os.open(source, os.O_PATH)

    def _new_root(self) -> None:
        kernel.mount("tmpfs", self._scratch, "tmpfs", options="mode=755")
        for name in os.listdir("/"):
            _repeat(f"/{name}", f"{self._scratch}/{name}")
        os.chroot(self._scratch)
        os.chdir("/")
        self._covered.add("/")

    def _bind(self, descriptor: int, entry: dict[str, object]) -> None:
        source = f"/proc/self/fd/{descriptor}"
        target = self._place(str(entry["target"]), directory=stat.S_ISDIR(os.fstat(descriptor).st_mode))
        kernel.mount(source, target, flags=kernel.BIND | kernel.RECURSIVE)
        if entry.get("read_only"):
            _make_read_only(target)
        if propagation := _PROPAGATION.get(str(entry.get("propagation") or "")):
            kernel.mount("none", target, flags=kernel.RECURSIVE | propagation)
        self._mounted.append(target)

    def _device(self, device: dict[str, object]) -> None:
        """The node's own device node, or one that is made from its numbers (which takes the right to make nodes)."""
        path, host = str(device["path"]), str(device["host_path"])
        if path == host and os.path.exists(path):
            return
        if os.path.exists(host):
            descriptor = os.open(host, os.O_PATH)
            self._bind(descriptor, {"target": path})
            os.close(descriptor)
            return
        kind = {"c": stat.S_IFCHR, "u": stat.S_IFCHR, "b": stat.S_IFBLK, "p": stat.S_IFIFO}.get(str(device["type"]))
        if kind is None:
            raise FileNotFoundError(f"device {host} does not exist on this node")
        place = self._place(path, directory=False)
        os.unlink(place)
        numbers = os.makedev(int(str(device["major"])), int(str(device["minor"])))
        mode = device["file_mode"]
        os.mknod(place, kind | (0o666 if mode is None else int(str(mode))), numbers)
        # mknod applies the umask.
        os.chmod(place, 0o666 if mode is None else int(str(mode)))

    def _place(self, path: str, *, directory: bool) -> str:
        """The path with all links followed, made if it was missing."""
        target = os.path.realpath(path)
        if os.path.exists(target):
            return target
        above = os.path.dirname(target)
        while not os.path.exists(above):
            above = os.path.dirname(above)
        if not self._is_ours(above):
            self._cover(above)
        os.makedirs(target if directory else os.path.dirname(target), exist_ok=True)
        if not directory:
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
        return target

    def _is_ours(self, path: str) -> bool:
        """Within a mount of the container, places are made in the volume, as every runtime does; or covered already."""
        return path in self._covered or any(path == at or path.startswith(f"{at}/") for at in self._mounted)

    def _cover(self, path: str) -> None:
        before = os.open(path, os.O_PATH | os.O_DIRECTORY)
        status = os.fstat(before)
        names = os.listdir(path)
        kernel.mount("tmpfs", path, "tmpfs", options=f"mode={stat.S_IMODE(status.st_mode):o}")
        # The old entries are reached through the descriptor, as their path now leads to the empty file system.
        for name in names:
            _repeat(f"/proc/self/fd/{before}/{name}", f"{path}/{name}")
        os.close(before)
        self._covered.add(path)


def _repeat(source: str, target: str) -> None:
    """Let an entry show up at another place: a link is made again, all else is mounted."""
    status = os.lstat(source)
    if stat.S_ISLNK(status.st_mode):
        os.symlink(os.readlink(source), target)
        return
    if stat.S_ISDIR(status.st_mode):
        os.mkdir(target)
    else:
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    kernel.mount(source, target, flags=kernel.BIND | kernel.RECURSIVE)


def _make_read_only(target: str) -> None:
    """A bind mount takes its flags in a second step; flags that a user namespace may not clear are kept."""
    flags = os.statvfs(target).f_flag
    kept = sum(flag for locked, flag in _LOCKED if flags & locked)
    kernel.mount("none", target, flags=kernel.REMOUNT | kernel.BIND | kernel.READ_ONLY | kept)
