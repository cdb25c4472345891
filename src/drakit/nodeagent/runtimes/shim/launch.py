"""Start the container's process: from `launch.json` to a running program.

In:  the launch document (argv, environment, mounts, limits, user, …).
Out: its pid and the ends of its standard streams. LaunchFailed, with a text for the pod, when it could not be started.
"""

from __future__ import annotations

import fcntl
import os
import pty
import resource
import signal
import struct
import termios
from typing import Any, NoReturn

from drakit.nodeagent.runtimes.shim import kernel
from drakit.nodeagent.runtimes.shim.filesystem import FileView
from drakit.nodeagent.runtimes.shim.hooks import HookError, run_hooks

_NOT_RUN = 127
_RLIMITS = {"data": resource.RLIMIT_DATA, "nproc": resource.RLIMIT_NPROC}


class LaunchFailed(Exception):
    """The program does not run."""


class Doorway:
    """How the child and its parent, `shim`, wait for each other."""

    def __init__(self, shim: int, say: int, gate: int) -> None:
        self.shim = shim
        self._say = say
        self._gate = gate

    def wait(self) -> None:
        """Tell that the namespaces are made; return when the hooks of the node side have run."""
        os.write(self._say, b"m")
        os.read(self._gate, 1)


class StandardStreams:
    """Our ends; `stdin` is -1 without one, `stderr` with a tty. With a tty `stdin` and `stdout` are the same."""

    # No dataclass: importing that takes a fifth of the shim's start.
    def __init__(self, stdin: int, stdout: int, stderr: int, *, tty: bool) -> None:
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self.tty = tty


def start(launch: dict[str, Any]) -> tuple[int, StandardStreams]:
    """Run the container's program, in the order of OCI:

    namespaces, mounts, devices -> prestart and createRuntime hooks, out here -> createContainer and startContainer
    hooks, in there -> the program.
    """
    ours, theirs = _open_streams(tty=launch["tty"], stdin=launch["stdin"])
    # `report` ends without a byte when the program was executed, or has the error. The child writes to `made` when its
    # namespaces are made, and waits at `gate` until the hooks of the node side have run.
    report, tell = os.pipe()
    made, say = os.pipe()
    gate, go = os.pipe()
    shim = os.getpid()
    pid = os.fork()
    if pid == 0:
        _become(launch, theirs, Doorway(shim, say, gate), tell)
    for descriptor in {*theirs, tell, say, gate}:
        os.close(descriptor)
    try:
        if os.read(made, 1):  # nothing: it failed before, and its report says why
            run_hooks(launch, ("prestart", "createRuntime"), status="creating", pid=pid)
    except HookError as error:
        _abandon(pid)
        raise LaunchFailed(str(error)) from None
    finally:
        os.close(made)
    _open_gate(go)
    # No race with exec: our copy of `tell` is closed above, and the one of the child closes on exec.
    message = _read_all(report)
    if message:
        os.waitpid(pid, 0)
        raise LaunchFailed(message)
    return pid, ours


def _open_gate(go: int) -> None:
    try:
        os.write(go, b"g")
    except BrokenPipeError:
        pass  # the child failed before it came there; its report says why
    finally:
        os.close(go)


def _abandon(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def _read_all(descriptor: int) -> str:
    """Ends when the last writer is gone: the child's end closes by itself when its program runs."""
    pieces = []
    while piece := os.read(descriptor, 4096):
        pieces.append(piece)
    os.close(descriptor)
    return b"".join(pieces).decode("utf-8", "replace")


def _open_streams(*, tty: bool, stdin: bool) -> tuple[StandardStreams, tuple[int, int, int]]:
    if tty:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        return StandardStreams(ours, ours, -1, tty=True), (theirs, theirs, theirs)
    out, their_out = os.pipe()
    err, their_err = os.pipe()
    if stdin:
        their_in, into = os.pipe()
    else:
        their_in, into = os.open(os.devnull, os.O_RDONLY), -1
    return StandardStreams(into, out, err, tty=False), (their_in, their_out, their_err)


def _become(launch: dict[str, Any], streams: tuple[int, int, int], doorway: Doorway, tell: int) -> NoReturn:
    """In the child: turn into the container's program, or report why not."""
    try:
        _prepare(launch, doorway)
        _take_streams(streams, tty=launch["tty"])
        _drop_rights(launch)
        # Once more: the kernel forgets it when the user changes.
        _die_with(doorway.shim)
        _reset_signals()
        # The successful exec closes it, which is what the parent waits for.
        os.set_inheritable(tell, False)
        _execute(launch)
    except BaseException as error:
        os.write(tell, str(error).encode() or type(error).__name__.encode())
    os._exit(_NOT_RUN)


def _prepare(launch: dict[str, Any], doorway: Doorway) -> None:
    # A session of its own: the group can be signalled as a whole, and a tty can become its controlling terminal.
    os.setsid()
    _die_with(doorway.shim)
    # Before the program runs: a process that it forks is then in the cgroup as well.
    for file in launch["cgroups"]:
        _write(file, str(os.getpid()))
    _set_oom_score(launch["oom_score_adj"])
    namespace = launch["namespace"]
    if namespace != "none":
        kernel.enter_new_namespaces(as_user=namespace == "user")
        _arrange_files(launch)
    doorway.wait()
    run_hooks(launch, ("createContainer",), status="creating", pid=os.getpid())
    run_hooks(launch, ("startContainer",), status="created", pid=os.getpid())


def _die_with(shim: int) -> None:
    """No process of a container outlives its shim."""
    kernel.die_with_parent(signal.SIGKILL)
    if os.getppid() != shim:  # it died before it could be watched
        os._exit(_NOT_RUN)


def _arrange_files(launch: dict[str, Any]) -> None:
    if launch["hostname"]:
        kernel.set_hostname(launch["hostname"])
    for path in launch["hide"]:
        if os.path.ismount(path):
            kernel.unmount(path)
    if overlay := launch.get("overlay"):
        options = ",".join(f"{name}={overlay[name]}" for name in ("lowerdir", "upperdir", "workdir"))
        kernel.mount("overlay", overlay["target"], "overlay", options=options)
    FileView(launch["scratch"]).apply(launch["mounts"], launch["devices"])


def _set_oom_score(score: int) -> None:
    """To lower the score takes a right that not everybody has; the container runs all the same."""
    try:
        _write("/proc/self/oom_score_adj", str(score))
    except OSError:
        return


def _take_streams(streams: tuple[int, int, int], *, tty: bool) -> None:
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    if tty:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _drop_rights(launch: dict[str, Any]) -> None:
    for name, most in launch["rlimits"].items():
        resource.setrlimit(_RLIMITS[name], (most, most))
    # Groups, then group, then user: after setuid the process may change neither of the others.
    if launch["groups"]:
        os.setgroups(launch["groups"])
    if launch["gid"] is not None and launch["gid"] != os.getgid():
        os.setgid(launch["gid"])
    if launch["uid"] is not None and launch["uid"] != os.getuid():
        if not launch["groups"]:
            os.setgroups([])
        os.setuid(launch["uid"])


def _reset_signals() -> None:
    # Ignored signals stay ignored over exec, and Python ignores SIGPIPE.
    for number in (signal.SIGPIPE, signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def _execute(launch: dict[str, Any]) -> NoReturn:
    argv, env, directory = launch["argv"], launch["env"], launch["cwd"]
    try:
        os.chdir(directory)
    except OSError as error:
        raise LaunchFailed(f"working directory {directory}: {error.strerror}") from None
    try:
        os.execvpe(argv[0], argv, env)
    except OSError as error:
        raise LaunchFailed(f'exec "{argv[0]}": {error.strerror}') from None


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
