"""Watch over one container: its output, its clients, its end.

One loop over descriptors. Invariants: `exit.json` appears once, after the last byte of output is in the log and every
process of the container is gone; while a client is behind by a megabyte, the container's output waits for it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import selectors
import signal
import socket
import struct
import termios
import time
from typing import Any

from drakit.nodeagent.runtimes.shim import frames, kernel
from drakit.nodeagent.runtimes.shim.hooks import HookError, run_hooks
from drakit.nodeagent.runtimes.shim.launch import LaunchFailed, StandardStreams, start
from drakit.nodeagent.runtimes.shim.logs import LogFile, now

_CHUNK = 64 * 1024
_BEHIND = 1 << 20
_KILL_AGAIN = 0.05
_DRAIN_SECONDS = 10.0


class _Client:
    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.frames = frames.ShimFrameReader()
        self.out = bytearray()
        self.attached = False
        self.wrote_stdin = False


class Supervisor:
    def __init__(self, directory: str) -> None:
        self._directory = directory
        with open(f"{directory}/launch.json", encoding="utf-8") as file:
            self._launch: dict[str, Any] = json.load(file)
        self._select = selectors.DefaultSelector()
        self._clients: dict[int, _Client] = {}
        self._stdin = bytearray()
        self._stdin_ends = False
        self._status: int | None = None
        self._killing = False
        self._pid = 0

    def begin(self) -> None:
        """Start the container's process. Raises LaunchFailed; `exit.json` says so too then."""
        # Before the first process is started, so that no orphan escapes.
        kernel.become_subreaper()
        self._log = LogFile(self._launch["log"])
        with open(f"{self._directory}/launching", "w", encoding="utf-8"):
            pass  # from here on nobody may start it a second time
        try:
            self._pid, self._streams = start(self._launch)
        except LaunchFailed as error:
            self._write("exit.json", {"code": 128, "error": str(error), "finished": now()})
            raise
        self._open = {self._streams.stdout: "stdout"}
        if self._streams.stderr >= 0:
            self._open[self._streams.stderr] = "stderr"
        # The socket first: who reads running.json may connect at once.
        self._listen()
        self._write(
            "running.json",
            {"shim": _named(os.getpid()), "pid": _named(self._pid), "boot": self._launch["boot"], "started": now()},
        )
        with contextlib.suppress(HookError):  # the program runs; OCI asks only for a word in the log
            run_hooks(self._launch, ("poststart",), status="running", pid=self._pid)

    def run(self) -> None:
        self._wakeup = self._catch_signals()
        for descriptor in (*self._open, self._wakeup):
            os.set_blocking(descriptor, False)
            self._select.register(descriptor, selectors.EVENT_READ)
        if self._streams.stdin >= 0:
            os.set_blocking(self._streams.stdin, False)
        # The process may have ended before the handler of SIGCHLD was set; that signal was lost.
        self._reap()
        while self._status is None:
            self._turn(_KILL_AGAIN if self._killing else None)
        self._finish()

    def _turn(self, seconds: float | None) -> None:
        for key, events in self._select.select(seconds):
            if key.fd in self._clients:
                self._serve(self._clients[key.fd], events)
            elif key.fd == self._wakeup:
                os.read(self._wakeup, 256)
            elif key.fileobj is self._socket:
                self._accept()
            elif key.fd in self._open and events & selectors.EVENT_READ:
                self._read_output(key.fd)
            if key.fd == self._streams.stdin and events & selectors.EVENT_WRITE:
                self._write_stdin()
        if self._killing:
            # Again on each turn: a process may fork between the listing and the signal.
            self._kill_all()
        self._reap()
        self._mind_slow_clients()

    # -- the container's streams

    def _read_output(self, descriptor: int) -> None:
        stream = self._open[descriptor]
        try:
            data = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return
        except OSError:  # a tty whose last process is gone
            data = b""
        if not data:
            self._log.end(stream)
            del self._open[descriptor]
            self._select.unregister(descriptor)
            return
        self._log.write(stream, data)
        kind = frames.STDOUT if stream == "stdout" else frames.STDERR
        for client in list(self._clients.values()):
            if client.attached:
                self._send(client, frames.frame(kind, data))

    def _write_stdin(self) -> None:
        descriptor = self._streams.stdin
        if descriptor < 0:
            self._stdin.clear()
            return
        try:
            while self._stdin:
                del self._stdin[: os.write(descriptor, self._stdin[:_CHUNK])]
        except BlockingIOError:
            pass
        except OSError:  # the process reads no more
            self._stdin.clear()
            self._stdin_ends = True
        if self._stdin_ends and not self._stdin:
            self._close_stdin()
        else:
            self._watch(descriptor, writing=bool(self._stdin), reading=descriptor in self._open)

    def _close_stdin(self) -> None:
        descriptor = self._streams.stdin
        if self._streams.tty:
            os.write(descriptor, b"\x04")  # what a terminal sends for the end of input
            self._stdin_ends = False
            return
        with contextlib.suppress(KeyError):
            self._select.unregister(descriptor)
        os.close(descriptor)
        self._streams.stdin = -1

    # -- clients

    def _listen(self) -> None:
        """Bound by a name relative to the directory: a socket's path may have 107 bytes only."""
        self._socket = socket.socket(socket.AF_UNIX)
        before = os.open(".", os.O_PATH)
        os.chdir(self._directory)
        with contextlib.suppress(FileNotFoundError):
            os.unlink("shim.sock")
        self._socket.bind("shim.sock")
        os.fchdir(before)
        os.close(before)
        self._socket.listen()
        self._socket.setblocking(False)
        self._select.register(self._socket, selectors.EVENT_READ)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            connection, _ = self._socket.accept()
            connection.setblocking(False)
            self._clients[connection.fileno()] = _Client(connection)
            self._select.register(connection, selectors.EVENT_READ)

    def _serve(self, client: _Client, events: int) -> None:
        if events & selectors.EVENT_WRITE:
            self._send(client, b"")
        if not events & selectors.EVENT_READ:
            return
        try:
            data = client.connection.recv(_CHUNK)
            received = client.frames.feed(data)
        except BlockingIOError:
            return
        except (OSError, ValueError):
            data, received = b"", []
        for kind, content in received:
            self._obey(client, kind, content)
        if not data:
            self._drop(client)

    def _obey(self, client: _Client, kind: bytes, content: bytes) -> None:
        if kind == frames.ATTACH:
            client.attached = True
        elif kind == frames.STDIN and self._streams.stdin >= 0:
            client.wrote_stdin = True
            self._stdin += content
            self._write_stdin()
        elif kind == frames.CLOSE_STDIN and self._launch["stdin_once"]:
            self._stdin_ends = True
            self._write_stdin()
        elif kind == frames.RESIZE and self._streams.tty:
            rows, columns = frames.rows_and_columns(content)
            fcntl.ioctl(self._streams.stdout, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        elif kind == frames.REOPEN:
            self._log.reopen()
            self._send(client, frames.frame(frames.REOPEN))
        elif kind == frames.KILL:
            self._killing = True

    def _send(self, client: _Client, data: bytes) -> None:
        client.out += data
        try:
            while client.out:
                del client.out[: client.connection.send(client.out[:_CHUNK])]
        except BlockingIOError:
            pass
        except OSError:
            self._drop(client)
            return
        self._watch(client.connection.fileno(), writing=bool(client.out), reading=True)

    def _drop(self, client: _Client) -> None:
        descriptor = client.connection.fileno()
        if self._clients.pop(descriptor, None) is None:
            return
        self._select.unregister(client.connection)
        client.connection.close()
        if client.wrote_stdin and self._launch["stdin_once"]:
            self._stdin_ends = True
            self._write_stdin()

    def _mind_slow_clients(self) -> None:
        """Back pressure: stop reading output while a client is far behind, and stdin while the container is."""
        behind = any(len(client.out) > _BEHIND for client in self._clients.values())
        for descriptor in self._open:
            writing = descriptor == self._streams.stdin and bool(self._stdin)
            self._watch(descriptor, reading=not behind, writing=writing)
        full = len(self._stdin) > _BEHIND
        for client in self._clients.values():
            reading = not (full and client.wrote_stdin)
            self._watch(client.connection.fileno(), reading=reading, writing=bool(client.out))

    def _watch(self, descriptor: int, *, reading: bool, writing: bool) -> None:
        events = (selectors.EVENT_READ if reading else 0) | (selectors.EVENT_WRITE if writing else 0)
        known = self._select.get_map().get(descriptor)
        if known is None:
            if events:
                self._select.register(descriptor, events)
        elif not events:
            self._select.unregister(descriptor)
        elif known.events != events:
            self._select.modify(known.fileobj, events)

    # -- the end

    def _catch_signals(self) -> int:
        wakeup, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._terminate)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        return wakeup

    def _terminate(self, *_: object) -> None:
        self._killing = True

    def _reap(self) -> None:
        """Wait for whoever ended; orphans of the container are ours too."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self._pid:
                    self._status = os.waitstatus_to_exitcode(status)

    def _kill_all(self) -> None:
        for pid in kernel.descendants(os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _finish(self) -> None:
        """The main process ended: so do all others; what they wrote is read to its end."""
        deadline = time.monotonic() + _DRAIN_SECONDS
        while kernel.descendants(os.getpid()) and time.monotonic() < deadline:
            self._kill_all()
            self._turn(0.01)
        # A process that the kernel cannot end yet may hold the pipe open, hence the deadline.
        while self._open and time.monotonic() < deadline:
            self._turn(0.05)
        for stream in self._open.values():
            self._log.end(stream)
        with contextlib.suppress(HookError):
            run_hooks(self._launch, ("poststop",), status="stopped")
        status = self._status if self._status is not None else 0
        # A negative status is the number of the signal; a shell reports 128 + n.
        code = status if status >= 0 else 128 - status
        self._write("exit.json", {"code": code, "oom": self._was_oom(), "finished": now()})
        self._say_goodbye(code)

    def _was_oom(self) -> bool:
        """The kernel counts in the container's cgroup whom it killed for memory."""
        return any(oom_kills(path) for path in self._launch["oom_files"])

    def _say_goodbye(self, code: int) -> None:
        for client in list(self._clients.values()):
            client.connection.settimeout(1)
            with contextlib.suppress(OSError):
                client.connection.sendall(bytes(client.out) + frames.frame(frames.EXIT, str(code).encode()))
            client.connection.close()
        self._socket.close()

    def _write(self, name: str, document: dict[str, Any]) -> None:
        path = f"{self._directory}/{name}"
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            json.dump(document, file)
        # The agent reads these files at any time, and must never see half a document.
        os.rename(f"{path}.new", path)


def oom_kills(path: str) -> int:
    """`oom_kill N` in `memory.events` (v2) or `memory.oom_control` (v1)."""
    try:
        with open(path, encoding="ascii") as file:
            for line in file:
                name, _, value = line.partition(" ")
                if name == "oom_kill":
                    return int(value)
    except OSError:
        return 0
    return 0


def boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def _named(pid: int) -> dict[str, object]:
    return {"pid": pid, "start": kernel.start_time(pid)}


__all__ = ["LaunchFailed", "StandardStreams", "Supervisor", "boot_id", "oom_kills"]
