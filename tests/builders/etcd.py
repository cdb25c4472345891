"""Real etcd servers on free ports of this machine, for tests; they end with whoever started them."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest


def needs_etcd() -> str:
    """The program, or a skipped test that says what is missing."""
    found = shutil.which("etcd")
    if found is None:
        pytest.skip("etcd is not installed (Debian: etcd-server)")
    return found


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Member:
    """One etcd process; `start` after `kill` goes on with its data."""

    def __init__(self, name: str, directory: Path, peers: dict[str, str]) -> None:
        self.name = name
        self.client = f"http://127.0.0.1:{_free_port()}"
        self._peers = peers
        self._directory = directory
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        peers = ",".join(f"{name}={url}" for name, url in self._peers.items())
        own = self._peers[self.name]
        command = [
            *(needs_etcd(), "--name", self.name, "--data-dir", str(self._directory / self.name)),
            *("--listen-client-urls", self.client, "--advertise-client-urls", self.client),
            *("--listen-peer-urls", own, "--initial-advertise-peer-urls", own),
            *("--initial-cluster", peers, "--initial-cluster-token", self._directory.name),
            # Elections within a second or two: tests kill members.
            *("--heartbeat-interval", "50", "--election-timeout", "500", "--log-level", "error"),
        ]
        with (self._directory / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def pause(self) -> None:
        """Stop it as it stands. On return all its threads have stopped: no answer comes any more."""
        if self.process is not None:
            self.process.send_signal(signal.SIGSTOP)
            os.waitpid(self.process.pid, os.WUNTRACED)

    def resume(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)

    def wait_ready(self, seconds: float = 30.0) -> None:
        host, _, port = self.client.removeprefix("http://").partition(":")
        until = time.monotonic() + seconds
        while True:
            try:
                socket.create_connection((host, int(port)), timeout=1).close()
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.02)
            else:
                return


@contextmanager
def etcd_cluster(directory: Path, members: int = 1) -> Iterator[list[Member]]:
    needs_etcd()
    names = [f"m{number}" for number in range(members)]
    peers = {name: f"http://127.0.0.1:{_free_port()}" for name in names}
    made = [Member(name, directory, peers) for name in names]
    with ExitStack() as stack:
        for each in made:
            stack.callback(each.kill)
            each.start()
        for each in made:
            each.wait_ready()
        yield made
