"""A control plane of replicas as real processes: etcd members, API servers, controllers, schedulers; each may fail.

Out: per process what it was made to suffer, and a kubeconfig that names both API servers.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import yaml

from tests.builders.etcd import Member, etcd_cluster

ROOT = Path(__file__).parents[2]
HASTY = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: true, leaseDuration: 3s, renewDeadline: 2s, retryPeriod: 200ms}
"""


class Replica:
    """One process. `kill` is -9, and `start` begins it again as it was; `pause` stops it as it stands."""

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        self.name = name
        self._command = command
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self.wanted = True
        self.restarts = 0

    def keep_up(self) -> None:
        """As a service manager does: who has ended by itself is started again. A leader that loses its lease ends."""
        if self.wanted and self._process is not None and self._process.poll() is not None:
            self.restarts += 1
            self.start()

    def start(self) -> None:
        self.wanted = True
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, cwd=ROOT)

    def kill(self) -> None:
        self.wanted = False
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def wait_written(self, file: Path, seconds: float = 60.0) -> None:
        """Until a server has told how it is reached: it does so when it serves."""
        until = time.monotonic() + seconds
        while not (file.exists() and file.read_text().endswith("\n")):
            if time.monotonic() > until:
                raise RuntimeError(f"{self.name} does not serve:\n{self._log.read_text()[-2000:]}")
            time.sleep(0.05)


class EtcdReplica(Replica):
    """A member of etcd as a replica."""

    def __init__(self, name: str, member: Member, log: Path) -> None:
        super().__init__(name, (), log)
        self._member = member
        self._process = member.process

    def start(self) -> None:
        self.wanted = True
        self._member.start()
        self._process = self._member.process

    def kill(self) -> None:
        self.wanted = False
        self._member.kill()


class ReplicatedCluster:
    def __init__(self, replicas: Sequence[Replica], kubeconfigs: Sequence[Path], both: Path) -> None:
        self.replicas = replicas
        self.kubeconfigs = kubeconfigs
        self.both = both


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def replicated(directory: Path, *, members: int = 3) -> Iterator[ReplicatedCluster]:
    """Three members of etcd and two of everything else, all of them up."""
    (directory / "etcd").mkdir()
    with ExitStack() as stack:
        etcd = stack.enter_context(etcd_cluster(directory / "etcd", members))
        ports, addresses = [_free_port(), _free_port()], ",".join(each.client for each in etcd)
        kubeconfigs = [directory / f"kubeconfig-{number}" for number in range(2)]
        drakit = (sys.executable, "-m", "drakit")
        servers = [
            Replica(
                f"apiserver-{number}",
                [
                    *(*drakit, "apiserver", "--port", str(port), "--data-dir", str(directory / "data")),
                    *("--etcd-servers", addresses, "--kubeconfig", str(kubeconfig)),
                ],
                directory / f"apiserver-{number}.log",
            )
            for number, (port, kubeconfig) in enumerate(zip(ports, kubeconfigs, strict=True))
        ]
        for each, kubeconfig in zip(servers, kubeconfigs, strict=True):
            _begin(stack, each)
            each.wait_written(kubeconfig)
        both = _merged(directory / "kubeconfig", kubeconfigs[0], [f"https://127.0.0.1:{port}" for port in ports])
        config = directory / "scheduler.yaml"
        config.write_text(HASTY)
        followers = [
            *(
                _follower(directory, both, "scheduler", n, "--config", str(directory / "scheduler.yaml"))
                for n in range(2)
            ),
            *(_follower(directory, both, "controllers", n, *_ELECTED) for n in range(2)),
        ]
        for each in followers:
            _begin(stack, each)
        members_ = [EtcdReplica(f"etcd-{n}", each, directory / "etcd.log") for n, each in enumerate(etcd)]
        yield ReplicatedCluster([*servers, *followers, *members_], kubeconfigs, both)


_ELECTED = (
    *("--leader-elect", "--leader-elect-lease-duration", "3"),
    *("--leader-elect-renew-deadline", "2", "--leader-elect-retry-period", "0.2"),
)


def _follower(directory: Path, kubeconfig: Path, name: str, number: int, *flags: str) -> Replica:
    command = [sys.executable, "-m", "drakit", name, "--port", "0", "--kubeconfig", str(kubeconfig), *flags]
    return Replica(f"{name}-{number}", command, directory / f"{name}-{number}.log")


def _begin(stack: ExitStack, replica: Replica) -> None:
    stack.callback(replica.kill)
    replica.start()


def _merged(path: Path, kubeconfig: Path, servers: Sequence[str]) -> Path:
    """A kubeconfig that names all servers."""
    document = yaml.safe_load(kubeconfig.read_text())
    extension = {"name": "drakit.io/servers", "extension": list(servers)}
    document["clusters"][0]["cluster"]["extensions"] = [extension]
    path.write_text(yaml.safe_dump(document))
    return path
