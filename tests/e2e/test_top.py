"""`drakit top` on a terminal, of a cluster that runs: it shows it, hears keys, and ends in good order."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

pytest.importorskip("textual", reason="drakit top needs the extra `top`")

from tests.e2e.commands import run
from tests.e2e.processes import ROOT, Running, apiserver, command

PATIENCE = 60.0


@pytest.fixture(scope="module")
def up() -> Iterator[Running]:
    with apiserver("--ephemeral", "--nodes", "2", name="up") as running:
        yield running


def test_it_shows_the_nodes_of_a_cluster_and_q_ends_it(up: Running) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    started = [sys.executable, "-m", "drakit", "top", "--kubeconfig", str(up.kubeconfig)]
    environment = {**os.environ, "TERM": "xterm-256color"}
    with subprocess.Popen(started, stdin=theirs, stdout=theirs, stderr=theirs, cwd=ROOT, env=environment) as process:
        os.close(theirs)
        seen, until, asked = b"", time.monotonic() + PATIENCE, False
        with suppress(OSError):  # the other side is closed in the end
            while process.poll() is None and time.monotonic() < until:
                if select.select([ours], [], [], 0.2)[0]:
                    seen += os.read(ours, 65536)
                if not asked and b"node-2" in seen and b"Pending" in seen:
                    os.write(ours, b"q")
                    asked = True
        assert process.wait(20) == 0
    os.close(ours)
    assert "··".encode() in seen


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [((), 2, "needs a terminal"), (("-f", "examples/demo-cluster"), 2, "needs a terminal"), (("--nope",), 2, "--nope")],
)
def test_what_cannot_be_shown_is_told_in_a_line(arguments: tuple[str, ...], code: int, said: str) -> None:
    found, output = run(command(*arguments, name="top"))
    assert (found, "Traceback" in output) == (code, False)
    assert said in output
