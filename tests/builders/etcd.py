"""Real etcd servers on free ports of this machine, for tests; they end with whoever started them."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import SystemRandom

import pytest


def needs_etcd() -> str:
    """The program, or a skipped test that says what is missing."""
    found = shutil.which("etcd")
    if found is None:
        pytest.skip("etcd is not installed (Debian: etcd-server)")
    return found


def free_port() -> int:
    """A port that stays free while its server is away: below those that the kernel gives to connections."""
    least = int(_GIVEN.read_text().split()[0]) if _GIVEN.exists() else 32768
    while True:
        port = _CHOICE.randrange(max(least - 15_000, 1024), least)
        with socket.socket() as found, suppress(OSError):
            found.bind(("127.0.0.1", port))
            return port


_GIVEN = Path("/proc/sys/net/ipv4/ip_local_port_range")
_CHOICE = SystemRandom()


def _url(port: int) -> str:
    return f"http://127.0.0.1:{port}"


Forward = Callable[[str, int], int]


class Member:
    """One etcd process; `start` after `kill` goes on with its data."""

    def __init__(
        self, name: str, directory: Path, ports: dict[str, int], peers: dict[str, int], forward: Forward
    ) -> None:
        """`ports` are where members listen to each other, `peers` where they find each other."""
        self.name = name
        self._listens = free_port()
        self.client = _url(forward(name, self._listens))
        self._own = ports[name]
        self._peers = peers
        self._directory = directory
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        peers = ",".join(f"{name}={_url(port)}" for name, port in self._peers.items())
        command = [
            *(needs_etcd(), "--name", self.name, "--data-dir", str(self._directory / self.name)),
            *("--listen-client-urls", _url(self._listens), "--advertise-client-urls", self.client),
            *("--listen-peer-urls", _url(self._own), "--initial-advertise-peer-urls", _url(self._peers[self.name])),
            *("--initial-cluster", peers, "--initial-cluster-token", self._directory.name),
            # Elections within a few seconds, as tests kill members; and none because the machine is busy.
            *("--heartbeat-interval", "150", "--election-timeout", "1500", "--pre-vote", "--log-level", "error"),
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
        until = time.monotonic() + seconds
        while True:
            try:
                socket.create_connection(("127.0.0.1", self._listens), timeout=1).close()
            except OSError:
                ended = self.process is None or self.process.poll() is not None
                if ended or time.monotonic() > until:
                    said = (self._directory / f"{self.name}.log").read_text()[-2000:]
                    raise RuntimeError(f"{self.name} does not serve:\n{said}") from None
                time.sleep(0.02)
            else:
                return


@contextmanager
def etcd_cluster(directory: Path, members: int = 1, forward: Forward = lambda _, port: port) -> Iterator[list[Member]]:
    """`forward` may put something in front of a member's port; it gives the port that leads there."""
    needs_etcd()
    names = [f"etcd-{number}" for number in range(members)]
    ports = {name: free_port() for name in names}
    peers = {name: forward(name, port) for name, port in ports.items()}
    made = [Member(name, directory, ports, peers, forward) for name in names]
    with ExitStack() as stack:
        for each in made:
            stack.callback(each.kill)
            each.start()
        for each in made:
            each.wait_ready()
        yield made
