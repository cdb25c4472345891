"""A server as its users start it: a process of its own, on a free port of this machine."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

ROOT = Path(__file__).parents[2]
_RUN = "from drakit.cli import main; main.COMMANDS['apiserver'] = 'drakit.cli.apiserver'; main.run()"
_LISTENING = re.compile(r"listening on (\S+), kubeconfig (\S+)")


class Running(msgspec.Struct, frozen=True):
    url: str
    kubeconfig: Path
    pid: int


def command(*arguments: str) -> list[str]:
    """What starts the server; `drakit apiserver …` by way of the command's own entry point."""
    return [sys.executable, "-c", _RUN, "apiserver", *arguments]


@contextmanager
def apiserver(*arguments: str) -> Iterator[Running]:
    """Start a server, wait until it listens, stop it in the end: it must end in good order."""
    started = command("--port", "0", *arguments)
    with subprocess.Popen(started, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT) as process:
        try:
            said = process.stdout.readline() if process.stdout else ""
            found = _LISTENING.search(said)
            if found is None:
                raise RuntimeError(f"the server did not start: {said}{process.stdout.read() if process.stdout else ''}")
            yield Running(found[1], Path(found[2]), process.pid)
        finally:
            process.terminate()
            ended = process.wait(timeout=20)
    if ended:
        raise RuntimeError(f"the server ended with {ended}")
