"""A control plane of replicas as real processes: etcd members, API servers, controllers, schedulers; each may fail.

Out: per process what it can be made to suffer, and a kubeconfig that names both API servers.

Every connection between them, and from the load, goes through a link that can be cut.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import yaml

from tests.builders.etcd import Forward, Member, etcd_cluster, free_port
from tests.chaos.links import Links

ROOT = Path(__file__).parents[2]
DRAKIT = (sys.executable, "-m", "drakit")
BRISK = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: true, leaseDuration: 10s, renewDeadline: 8s, retryPeriod: 500ms}
"""
_ELECTED = (
    *("--leader-elect", "--leader-elect-lease-duration", "10"),
    *("--leader-elect-renew-deadline", "8", "--leader-elect-retry-period", "0.5"),
)
_ENOUGH = 240.0
"""Seconds that a server may take to serve, on a machine that has much else to do."""


class Replica:
    """One process. `kill` is -9, `end` is SIGTERM; `start` begins it again as it was; `pause` stops it as it stands."""

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        self.name = name
        self._command = command
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self.wanted = True
        self.restarts = 0
        self._begun = 0

    def keep_up(self) -> None:
        """As a service manager does: who has ended by itself is started again. A leader that loses its lease ends."""
        if self.wanted and self._process is not None and self._process.poll() is not None:
            self.restarts += 1
            self.start()

    def start(self) -> None:
        self.wanted = True
        self._begun = len(self._log.read_text()) if self._log.exists() else 0
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, cwd=ROOT)

    def kill(self) -> None:
        self.wanted = False
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def end(self) -> int:
        """Let it end in good order; its exit code."""
        self.wanted = False
        self._signal(signal.SIGTERM)
        return self._process.wait(_ENOUGH) if self._process is not None else 0

    @property
    def is_elected(self) -> bool:
        """Whether one of its kind leads, and another takes its place when it is away for too long."""
        return self.name.startswith(("scheduler", "controllers"))

    @property
    def pid(self) -> int:
        return self._process.pid if self._process is not None else 0

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def wait_well(self) -> None:
        """Until it works, after a start."""
        self.wait_said("following" if self.is_elected else "listening on")

    def wait_said(self, words: str) -> None:
        """Until the log of this start has the words."""
        until = time.monotonic() + _ENOUGH
        while words not in (said := self._log.read_text()[self._begun :]):
            if time.monotonic() > until:
                raise RuntimeError(f"{self.name} does not serve:\n{said[-2000:]}")
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

    def wait_well(self) -> None:
        self._member.wait_ready(_ENOUGH)

    def pause(self) -> None:
        self._member.pause()

    def resume(self) -> None:
        self._member.resume()


class ReplicatedCluster:
    """`both` is a kubeconfig with all API servers, `kubeconfigs` have one each; `servers` are the API servers."""

    def __init__(
        self,
        links: Links,
        servers: Sequence[Replica],
        others: Sequence[Replica],
        kubeconfigs: Sequence[Path],
        both: Path,
    ) -> None:
        self.links = links
        self.servers = servers
        self.replicas = (*servers, *others)
        self.kubeconfigs = kubeconfigs
        self.both = both


@contextmanager
def replicated(
    directory: Path, *, members: int = 3, followers: int = 3, linked: bool = True
) -> Iterator[ReplicatedCluster]:
    """Two API servers on members of etcd, and schedulers and controllers, all of them up.

    Without links nothing stands between them, and nothing can be cut.
    """
    (directory / "etcd").mkdir()
    (directory / "scheduler.yaml").write_text(BRISK)
    replicas: list[Replica] = []

    def processes() -> Mapping[str, int]:
        return {"load": os.getpid(), **{each.name: each.pid for each in replicas}}

    with ExitStack() as stack:
        links = Links(processes)
        stack.callback(links.close)
        forward: Forward = links.forward if linked else lambda _, port: port
        etcd = stack.enter_context(etcd_cluster(directory / "etcd", members, forward))
        replicas += [EtcdReplica(each.name, each, directory / "etcd.log") for each in etcd]
        servers, kubeconfigs = _servers(directory, stack, forward, ",".join(each.client for each in etcd))
        both = _pointing(directory / "kubeconfig", kubeconfigs[0], [_address_of(each) for each in kubeconfigs])
        flags = ("--config", str(directory / "scheduler.yaml"))
        made = [_follower(directory, both, "scheduler", number, *flags) for number in range(followers)]
        made += [_follower(directory, both, "controllers", number, *_ELECTED) for number in range(followers)]
        replicas += [*servers, *made]
        for each in made:
            _begin(stack, each)
        yield ReplicatedCluster(links, servers, [each for each in replicas if each not in servers], kubeconfigs, both)


def _servers(directory: Path, stack: ExitStack, forward: Forward, etcd: str) -> tuple[list[Replica], list[Path]]:
    """Two API servers, one after the other: the first makes the keys and certificates that both use."""
    servers, kubeconfigs = [], []
    for number in range(2):
        port, kubeconfig = free_port(), directory / f"direct-{number}"
        command = [
            *(*DRAKIT, "apiserver", "--port", str(port), "--data-dir", str(directory / "data")),
            *("--etcd-servers", etcd, "--kubeconfig", str(kubeconfig)),
            *("--enable-admission-plugins", "DeviceOwnership"),
        ]
        server = Replica(f"apiserver-{number}", command, directory / f"apiserver-{number}.log")
        _begin(stack, server)
        server.wait_said("listening on")
        linked = f"https://127.0.0.1:{forward(server.name, port)}"
        kubeconfigs.append(_pointing(directory / f"kubeconfig-{number}", kubeconfig, [linked]))
        servers.append(server)
    return servers, kubeconfigs


def _follower(directory: Path, kubeconfig: Path, name: str, number: int, *flags: str) -> Replica:
    command = [*DRAKIT, name, "--port", "0", "--kubeconfig", str(kubeconfig), *flags]
    return Replica(f"{name}-{number}", command, directory / f"{name}-{number}.log")


def _begin(stack: ExitStack, replica: Replica) -> None:
    stack.callback(replica.kill)
    replica.start()


def _address_of(kubeconfig: Path) -> str:
    return str(yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"])


def _pointing(path: Path, kubeconfig: Path, servers: Sequence[str]) -> Path:
    """A kubeconfig like another one that names these servers."""
    document = yaml.safe_load(kubeconfig.read_text())
    cluster = document["clusters"][0]["cluster"]
    cluster["server"] = servers[0]
    cluster["extensions"] = [{"name": "drakit.io/servers", "extension": [*servers[1:]]}]
    path.write_text(yaml.safe_dump(document))
    return path
