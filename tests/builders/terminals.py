"""A program on a real terminal: a pty as sshd makes one for whoever logs in, with a size, a TERM and a hangup."""

from __future__ import annotations

import fcntl
import os
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

_ESCAPES = re.compile(
    r"\x1b\[[0-9;?<>=]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1bP.*?\x1b\\|\x1b[()][A-Z0-9]|\x1b."
)
SECONDS = 100
_AGAIN = 10.0
"""Far longer than anything takes, on a machine that has much else to do."""


class Terminal:
    """`shown` is everything that was written, `text` the same without escape sequences."""

    def __init__(self, master: int, process: subprocess.Popen[bytes]) -> None:
        self._master = master
        self.process = process
        self.shown = ""

    @property
    def text(self) -> str:
        return _plain(self.shown)

    def until(self, wanted: str) -> str:
        """Read until the text has it after what was read before. Fail with what there is."""
        # In what was written, not in its text: a sequence that came in two parts is text before it is complete.
        start, end = len(self.shown), time.monotonic() + SECONDS
        while wanted not in _plain(self.shown[start:]):
            assert self._read(end), f"no {wanted!r} in {_plain(self.shown[start:])!r}"
        return _plain(self.shown[start:])

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def resize(self, rows: int, columns: int) -> None:
        _set_size(self._master, rows, columns)

    def hang_up(self) -> None:
        """The connection is gone: the kernel tells the programs of the terminal."""
        os.close(self._master)
        self._master = -1

    def ended(self) -> int:
        """The exit code; the rest of the output is read."""
        end = time.monotonic() + SECONDS
        while self._master >= 0 and self._read(end):
            pass
        return self.process.wait(timeout=SECONDS)

    def interrupted(self) -> int:
        """The exit code after Ctrl-C. It is pressed again after a while, as people do: a signal that comes right before
        readline begins to wait is noticed with the next key.
        """
        for _ in range(int(SECONDS / _AGAIN)):
            self.type("\x03")
            end = time.monotonic() + _AGAIN
            while self._read(end):
                pass
            if time.monotonic() < end or self.process.poll() is not None:
                break  # nothing more can be read: it has ended
        return self.ended()

    def close(self) -> None:
        if self._master >= 0:
            os.close(self._master)

    def _read(self, end: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], max(0.0, end - time.monotonic()))
        try:
            data = os.read(self._master, 65536) if ready else b""
        except OSError:  # nobody has the other end any more
            return False
        self.shown += data.decode(errors="replace")
        return bool(data)


@contextmanager
def on_terminal(*words: str, env: Mapping[str, str], rows: int = 24, columns: int = 80) -> Iterator[Terminal]:
    """`drakit` with these words. Whatever is left of it is ended."""
    master, slave = os.openpty()
    _set_size(master, rows, columns)
    line = [sys.executable, "-m", "drakit", *words]
    process = subprocess.Popen(
        line, stdin=slave, stdout=slave, stderr=slave, env={**os.environ, **env}, start_new_session=True,
        preexec_fn=_control,  # noqa: PLW1509 - before any thread
    )  # fmt: skip
    os.close(slave)
    terminal = Terminal(master, process)
    try:
        yield terminal
    finally:
        terminal.close()
        process.kill()
        process.wait()


def _plain(shown: str) -> str:
    return _ESCAPES.sub("", shown)


def _control() -> None:
    """The terminal is that of the new session: it gets the signals of its keys, and the hangup."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _set_size(terminal: int, rows: int, columns: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
