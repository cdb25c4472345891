"""Run one more program inside a running container: exec.

In:  a document with the container's pid, the command, its environment, directory and user; streams are inherited.
Out: this process turns into the program. It exits with 126 or 127, and says why on stderr, when that cannot be.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import sys
import termios
from typing import Any, NoReturn

from drakit.nodeagent.runtimes.shim import kernel

_NOT_ALLOWED, _NOT_FOUND = 126, 127


def enter(request: dict[str, Any]) -> NoReturn:
    try:
        # When the agent dies, nobody reads the output of an exec any more.
        kernel.die_with_parent(signal.SIGKILL)
        if request["tty"]:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        _join(request)
        _drop_rights(request)
        os.chdir(request["cwd"])
        os.execvpe(request["argv"][0], request["argv"], request["env"])
    except OSError as error:
        sys.stderr.write(f'exec "{request["argv"][0]}": {error.strerror or error}\n')
        sys.stderr.flush()
        os._exit(_NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_ALLOWED)


def _join(request: dict[str, Any]) -> None:
    """The container's cgroup, namespaces and root; all are opened first, as /proc may look different afterwards."""
    pid = request["pid"]
    for file in request["cgroups"]:
        with contextlib.suppress(OSError), open(file, "w", encoding="ascii") as procs:
            procs.write(str(os.getpid()))
    root = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_DIRECTORY)
    spaces = [kind for kind in ("user", "mnt", "uts") if _differs(pid, kind)]
    for descriptor in [os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY) for kind in spaces]:
        kernel.set_namespace(descriptor)
    # Joining a mount namespace does not change the root: the container may have built a new one within it.
    os.fchdir(root)
    if spaces:
        os.chroot(".")


def _differs(pid: int, kind: str) -> bool:
    return os.readlink(f"/proc/{pid}/ns/{kind}") != os.readlink(f"/proc/self/ns/{kind}")


def _drop_rights(request: dict[str, Any]) -> None:
    if request["gid"] is not None and request["gid"] != os.getgid():
        os.setgid(request["gid"])
    if request["uid"] is not None and request["uid"] != os.getuid():
        # Before setuid: afterwards the right to change groups is gone.
        os.setgroups([])
        os.setuid(request["uid"])
