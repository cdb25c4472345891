"""Commands as their users start them: processes of their own, on free ports of this machine."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

ROOT = Path(__file__).parents[2]
_FOLLOWING = re.compile(r"following (\S+), metrics on (\S+)/metrics")
_LISTENING = re.compile(r"listening on (\S+), kubeconfig (\S+)")


class Running(msgspec.Struct, frozen=True):
    """A server that listens."""

    url: str
    kubeconfig: Path
    pid: int


class Following(msgspec.Struct, frozen=True):
    """A component that follows a server, and shows itself at another address."""

    server: str
    shown: str
    process: subprocess.Popen[str]


def command(*arguments: str, name: str = "apiserver") -> list[str]:
    """What starts a command: `drakit apiserver …`."""
    return [sys.executable, "-m", "drakit", name, *arguments]


@contextmanager
def apiserver(*arguments: str, name: str = "apiserver", killed: bool = False) -> Iterator[Running]:
    """Start a server, wait until it listens, stop it in the end: it must end in good order unless the test kills it."""
    with _started(name, _LISTENING, arguments, killed=killed) as (process, found):
        yield Running(found[1], Path(found[2]), process.pid)


@contextmanager
def controllers(kubeconfig: Path, *arguments: str, killed: bool = False) -> Iterator[Following]:
    """Start controllers and wait until they follow; they end in good order unless the test kills them."""
    with following("controllers", "--kubeconfig", str(kubeconfig), *arguments, killed=killed) as working:
        yield working


@contextmanager
def following(name: str, *arguments: str, killed: bool = False, under: Sequence[str] = ()) -> Iterator[Following]:
    """Start a component that follows a server; `under` is a command that becomes the component."""
    with _started(name, _FOLLOWING, arguments, killed=killed, under=under) as (process, found):
        yield Following(found[1], found[2], process)


@contextmanager
def _started(
    name: str, announced: re.Pattern[str], arguments: Sequence[str], *, killed: bool = False, under: Sequence[str] = ()
) -> Iterator[tuple[subprocess.Popen[str], re.Match[str]]]:
    started = [*under, *command("--port", "0", *arguments, name=name)]
    with subprocess.Popen(started, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT) as process:
        try:
            found = _announcement(process, announced)
            with drained(process):
                yield process, found
        finally:
            process.terminate()
            ended = process.wait(timeout=90)
    if ended and not killed:
        raise RuntimeError(f"{name} ended with {ended}")


@contextmanager
def drained(process: subprocess.Popen[str]) -> Iterator[None]:
    """Read what the process says from now on: one whose pipe is full stands still. It ends with the context."""
    reader = threading.Thread(target=lambda: deque(process.stdout or (), maxlen=0), daemon=True)
    reader.start()
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=90)
        reader.join(timeout=90)


def _announcement(process: subprocess.Popen[str], announced: re.Pattern[str]) -> re.Match[str]:
    said = ""
    for line in process.stdout or ():
        said += line
        if (found := announced.search(line)) is not None:
            return found
    raise RuntimeError(f"it did not start: {said}")
