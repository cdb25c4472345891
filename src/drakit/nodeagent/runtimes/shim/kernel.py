"""System calls that Python 3.11 has no function for: namespaces, mounts, process control."""

from __future__ import annotations

import ctypes
import os

NEW_MOUNT, NEW_UTS, NEW_USER = 0x00020000, 0x04000000, 0x10000000
READ_ONLY, NO_SUID, NO_DEV, NO_EXEC = 1, 2, 4, 8
REMOUNT, BIND, RECURSIVE = 32, 4096, 16384
PRIVATE, SLAVE, SHARED = 1 << 18, 1 << 19, 1 << 20
_DETACH = 2
_PARENT_DEATH_SIGNAL, _SUBREAPER = 1, 36

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    _check(_libc.unshare(flags), "unshare")


def set_namespace(descriptor: int) -> None:
    _check(_libc.setns(descriptor, 0), "setns")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    arguments = (
        os.fsencode(source),
        os.fsencode(target),
        kind.encode() or None,
        ctypes.c_ulong(flags),
        options.encode(),
    )
    _check(_libc.mount(*arguments), f"mount {source} on {target}")


def unmount(target: str) -> None:
    _check(_libc.umount2(os.fsencode(target), _DETACH), f"unmount {target}")


def set_hostname(name: str) -> None:
    encoded = name.encode()[:64]
    _check(_libc.sethostname(encoded, len(encoded)), "sethostname")


def become_subreaper() -> None:
    """Orphans of the container become children of this process, so that all of them can be found and ended."""
    _check(_libc.prctl(_SUBREAPER, 1, 0, 0, 0), "prctl")


def die_with_parent(signal_number: int) -> None:
    _check(_libc.prctl(_PARENT_DEATH_SIGNAL, signal_number, 0, 0, 0), "prctl")


def enter_new_namespaces(*, as_user: bool) -> None:
    """A mount and host name namespace; `as_user`: within a user namespace in which everybody keeps his own id."""
    uid, gid = os.geteuid(), os.getegid()
    unshare(NEW_MOUNT | NEW_UTS | (NEW_USER if as_user else 0))
    if as_user:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/gid_map", f"{gid} {gid} 1")
        _write("/proc/self/uid_map", f"{uid} {uid} 1")
    # What the node mounts later still arrives; what is mounted here stays here.
    mount("none", "/", flags=RECURSIVE | SLAVE)


def start_time(pid: int) -> str:
    """When the process was started, in ticks since boot; with its pid it names the process. Empty once it ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def parents() -> dict[int, int]:
    """The parent of every process that is there."""
    return _numbers(1)


def sessions() -> dict[int, int]:
    """The session of every process that is there: the pid of its leader."""
    return _numbers(3)


def _numbers(position: int) -> dict[int, int]:
    """One field of `/proc/<pid>/stat`, counted from the state, which comes after the program's name."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as file:
                    found[int(name)] = int(file.read().rpartition(")")[2].split()[position])
            except OSError:
                continue
    return found


def descendants(of: int) -> list[int]:
    parent = parents()
    found: list[int] = []
    for pid in parent:
        above = pid
        while above in parent and above != of:
            above = parent[above]
        if above == of and pid != of:
            found.append(pid)
    return found


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
