"""API servers on every engine, and schedulers beside each other, as processes. Run as `python -m benchmarks replicas`.

One client creates pods: on one server in memory, on SQLite and on etcd, and on two servers of one etcd. Then one, two
and three schedulers, each for its own pods, give devices to claims: each on nodes of its own, or all on the same ones.
All processes share one machine: time counts who waits for whom, CPU what the work costs. etcd is Debian's.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.report import publish
from benchmarks.scheduling import manifests
from benchmarks.scheduling.clusters import percentile
from drakit.client import PODS, Client, load_kubeconfig
from drakit.client.transport.http import Http
from tests.builders.etcd import etcd_cluster
from tests.e2e.processes import Running, apiserver, following

POD_COUNT = 600
CALLERS = 16
NODES = 24
DEVICES = 8
CLAIM_COUNT = 150
NAMESPACE = "default"
_TICKS = os.sysconf("SC_CLK_TCK")
_UNELECTED = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {{leaderElect: false}}
profiles: [{{schedulerName: {name}}}]
"""

Row = tuple[str, ...]


@dataclass(slots=True)
class ServerProcesses:
    """API servers of one cluster, with all processes that are below them."""

    running: list[Running] = field(default_factory=list)
    pids: list[int] = field(default_factory=list)

    @property
    def cpu(self) -> float:
        return sum(map(cpu_of, self.pids))


def cpu_of(pid: int) -> float:
    """Seconds of CPU that a process has used, of user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


@contextmanager
def serving(engine: str, servers: int = 1, *flags: str) -> Iterator[ServerProcesses]:
    made = ServerProcesses()
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        place = ["--ephemeral"] if engine == "memory" else ["--data-dir", str(directory / "data")]
        place += flags
        if engine == "etcd":
            (directory / "etcd").mkdir()
            (member,) = stack.enter_context(etcd_cluster(directory / "etcd"))
            assert member.process is not None
            made.pids.append(member.process.pid)
            place += ["--etcd-servers", member.client]
        for number in range(servers):
            running = stack.enter_context(apiserver(*place, "--kubeconfig", str(directory / f"kubeconfig-{number}")))
            made.running.append(running)
            made.pids.append(running.pid)
        yield made


async def create_pods(servers: Sequence[Running]) -> tuple[float, list[float]]:
    """Callers of all servers, each in turn; seconds in all, and of each pod."""
    took: list[float] = []
    names = iter(range(POD_COUNT))
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(client_of(each)) for each in servers]

        async def call(client: Client) -> None:
            for number in names:
                start = time.perf_counter()
                await client.create(manifests.pod(f"pod-{number}", NAMESPACE))
                took.append(time.perf_counter() - start)

        start = time.perf_counter()
        await asyncio.gather(*(call(clients[number % len(clients)]) for number in range(CALLERS)))
        return time.perf_counter() - start, took


def client_of(server: Running) -> Client:
    return Client(Http(load_kubeconfig([server.kubeconfig]), timeout=120.0))


def pods_row(where: str, engine: str, servers: int) -> Row:
    with serving(engine, servers) as made:
        before = made.cpu
        seconds, took = uvloop.run(create_pods(made.running))
        cpu = (made.cpu - before) / POD_COUNT
    times = (f"{percentile(took, share) * 1e3:.1f} ms" for share in (0.5, 0.99))
    return "create pods", where, f"{POD_COUNT / seconds:.0f} /s", *times, f"{cpu * 1e3:.2f} ms"


def claims_row(schedulers: int, *, disjoint: bool) -> Row:
    with serving("etcd", 1, "--enable-admission-plugins", "DeviceOwnership") as made, ExitStack() as stack:
        server = made.running[0]
        uvloop.run(prepare(server, schedulers, disjoint=disjoint))
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        before, pids = made.cpu, list[int]()
        for number in range(schedulers):
            config = directory / f"{number}.yaml"
            config.write_text(_UNELECTED.format(name=f"s{number}"))
            flags = ("--kubeconfig", str(server.kubeconfig), "--config", str(config))
            pids.append(stack.enter_context(following("scheduler", *flags)).process.pid)
        begun = sum(map(cpu_of, pids))
        seconds = uvloop.run(allocate_all(server, schedulers, disjoint=disjoint))
        below = (made.cpu - before) / CLAIM_COUNT
        above = (sum(map(cpu_of, pids)) - begun) / CLAIM_COUNT
    where = (
        f"{schedulers} scheduler{'s' if schedulers > 1 else ''}, {'nodes of their own' if disjoint else 'same nodes'}"
    )
    cost = f"{above * 1e3:.1f} ms schedulers, {below * 1e3:.1f} ms server and etcd"
    return "allocate claims", where, f"{CLAIM_COUNT / seconds:.0f} /s", "", "", cost


async def prepare(server: Running, schedulers: int, *, disjoint: bool) -> None:
    async with client_of(server) as client:
        await client.create(manifests.device_class())
        for number in range(NODES):
            node = manifests.node(number)
            if disjoint:
                node["metadata"]["labels"]["shard"] = str(number % schedulers)
            await client.create(node)
            await client.create(manifests.local_slice(number, DEVICES))
        for number in range(CLAIM_COUNT):
            await client.create(manifests.claim(number, NAMESPACE))


async def allocate_all(server: Running, schedulers: int, *, disjoint: bool) -> float:
    """Seconds from the first pod until all are bound. Pods are created all at once, faster than they are bound."""
    async with client_of(server) as client:
        since = (await client.list(PODS, namespace=NAMESPACE)).resource_version
        start = time.perf_counter()
        making = asyncio.gather(*(client.create(_user(number, schedulers, disjoint)) for number in range(CLAIM_COUNT)))
        bound: set[str] = set()
        while len(bound) < CLAIM_COUNT:
            async with client.watch(PODS, namespace=NAMESPACE, since=since) as changes:
                async for change in changes:
                    since = change.resource_version
                    if change.object is not None and change.object.view.spec.node_name:
                        bound.add(change.object.view.metadata.name)
                    if len(bound) == CLAIM_COUNT:
                        break
        seconds = time.perf_counter() - start
        await making
        return seconds


def _user(number: int, schedulers: int, disjoint: bool) -> dict[str, Any]:
    made = manifests.pod_of_claim(f"pod-{number}", NAMESPACE, f"test-claim-{number}")
    made["spec"]["schedulerName"] = f"s{number % schedulers}"
    if disjoint:
        made["spec"]["nodeSelector"] = {"shard": str(number % schedulers)}
    return made


def main() -> None:
    rows = [
        pods_row("1 server, memory", "memory", 1),
        pods_row("1 server, SQLite", "sqlite", 1),
        pods_row("1 server, etcd", "etcd", 1),
        pods_row("2 servers, etcd", "etcd", 2),
    ]
    rows += [claims_row(count, disjoint=disjoint) for disjoint in (True, False) for count in (1, 2, 3)]
    title = f"Replicas as processes: {POD_COUNT} pods by {CALLERS} callers; {CLAIM_COUNT} claims, {NODES} nodes"
    publish("replicas", title, ("what", "where", "rate", "median", "99 %", "CPU each"), rows)


if __name__ == "__main__":
    main()
