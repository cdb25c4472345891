"""The shim's commands: `supervise DIRECTORY LOCK`, `enter REQUEST`, `hide PATHS PROGRAM…`, `probe`, `probe-overlay`.

`supervise` holds the descriptor LOCK, of a file that the agent locked, for as long as it lives. It answers with one
line on stdout, `ok` or what failed, and goes on in the background.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys

from drakit.nodeagent.runtimes.shim import kernel


def main(arguments: list[str]) -> None:
    command, *rest = arguments
    lock = int(rest[1]) if command == "supervise" else -1
    _close_others(lock)
    if command == "supervise":
        os.set_inheritable(lock, False)
        _supervise(rest[0])
    elif command == "enter":
        from drakit.nodeagent.runtimes.shim.enter import enter

        enter(json.loads(rest[0]))
    elif command == "hide":
        _hide(json.loads(rest[0]), rest[1:])
    elif command == "probe":
        print(_namespace())
    elif command == "probe-overlay":
        print(_overlay(rest[0]))


def _close_others(keep: int) -> None:
    """Whatever else the agent's event loop let through is none of a container's business, and would be held open."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) != keep:
            with contextlib.suppress(OSError):
                os.close(int(name))


def _supervise(directory: str) -> None:
    """Its parent is whoever adopts orphans, from the start: nothing changes for it when the agent goes."""
    from drakit.nodeagent.runtimes.shim.supervise import LaunchFailed, Supervisor

    # The parent exits, so init or the nearest subreaper adopts this process.
    if os.fork():
        os._exit(0)
    os.setsid()
    supervisor = Supervisor(directory)
    try:
        supervisor.begin()
    except (LaunchFailed, OSError) as error:
        _answer(f"{error}")
        os._exit(1)
    _answer("ok")
    supervisor.run()


def _answer(text: str) -> None:
    """Then let go of the agent's streams."""
    with contextlib.suppress(BrokenPipeError):  # the agent is gone; the next one reads the files
        os.write(1, f"{text}\n".encode())
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)


def _hide(paths: list[str], program: list[str]) -> None:
    """Run a program that must not see some mounts of the node."""
    kernel.unshare(kernel.NEW_MOUNT)
    kernel.mount("none", "/", flags=kernel.RECURSIVE | kernel.SLAVE)
    for path in paths:
        if os.path.ismount(path):
            kernel.unmount(path)
    os.execvp(program[0], program)


def _namespace() -> str:
    """Which namespaces the kernel lets us make: `mount`, `user` (a mount namespace within a user one) or `none`."""
    for name in ("mount", "user"):
        # In a child: a namespace that was entered cannot be left again.
        pid = os.fork()
        if pid == 0:
            try:
                kernel.enter_new_namespaces(as_user=name == "user")
                os._exit(0)
            except OSError:
                os._exit(1)
        if os.waitpid(pid, 0)[1] == 0:
            return name
    return "none"


def _overlay(directory: str) -> str:
    """`yes` when files below the directory can be the writable layer of an overlay."""
    for name in ("lower", "upper", "work", "merged"):
        os.makedirs(f"{directory}/{name}", exist_ok=True)
    options = f"lowerdir={directory}/lower,upperdir={directory}/upper,workdir={directory}/work"
    try:
        kernel.enter_new_namespaces(as_user=False)
        kernel.mount("overlay", f"{directory}/merged", "overlay", options=options)
    except OSError as error:
        return str(error)
    return "yes"


if __name__ == "__main__":
    main(sys.argv[1:])
