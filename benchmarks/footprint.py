"""What it takes to be there: start, memory, long lists, idle nodes. Run as `python -m benchmarks footprint [PART…]`.

Each row has its bar. CPU time is that of the process that is measured: what else the machine does does not count.
"""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import uvloop

from benchmarks import apiserver
from benchmarks.report import publish
from drakit.api.exchange import EventStream, Request
from drakit.api.objects.partial import Partial
from drakit.apiserver import Server, build_server
from drakit.apiserver.auth.identities import ADMIN
from drakit.base.clock import FakeClock
from drakit.cli.processes.collector import spare_the_collector
from drakit.client import LEASES, Client, InProcess
from drakit.store import MemoryStore, SQLiteStore, Store

COLUMNS = ("what", "took", "bar", "more")
OBJECTS = 50_000
CLAIMS = 5_000
PODS = 5_000
NODES = 2_000
WATCHES = 1_000
PERIOD = 10.0
"""Seconds between two heartbeats of a node."""

Row = tuple[str, str, str, str]


def version() -> Row:
    """The command that does least: what every command pays for its start."""
    command = [sys.executable, "-m", "drakit", "--version"]
    times = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return "drakit --version", f"{min(times):.2f} s CPU", "0.2 s", "best of five"


async def _fill(store: Store, count: int) -> None:
    """Claims like those that a server writes, straight into the store."""
    server = await build_server(store)
    client = Client(InProcess(server))
    await client.create(_claim("model-00000"))
    (record,) = [each for each in (await store.list("/registry/")).records if "model-00000" in each.key]
    for start in range(0, count, 500):
        names = [f"claim-{number:05d}" for number in range(start, start + 500)]
        values = [record.value.replace(b"model-00000", name.encode()) for name in names]
        keys = [record.key.replace("model-00000", name) for name in names]
        await asyncio.gather(*(store.create(key, value) for key, value in zip(keys, values, strict=True)))
    await server.close()


def start() -> Row:
    """A cluster over a file with many claims, until it says that it is ready: informers have all of them then."""

    async def fill(path: Path) -> None:
        async with await SQLiteStore.open(path) as store:
            await _fill(store, OBJECTS)

    with tempfile.TemporaryDirectory() as directory:
        data = Path(directory) / "data"
        data.mkdir()
        uvloop.run(fill(data / "drakit.db"))
        command = [sys.executable, "-m", "drakit", "up", "--port", "0", "--nodes", "0", "--data-dir", str(data)]
        begun = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                line = process.stdout.readline() if process.stdout else ""
                took = time.perf_counter() - begun
                fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
                cpu = (int(fields[11]) + int(fields[12])) / 100
            finally:
                process.terminate()
    return f"drakit up with {OBJECTS:,} objects", f"{cpu:.1f} s CPU", "5 s", f"{took:.1f} s; {line.strip()[:40]}"


def memory() -> Row:
    """What a claim takes beyond its JSON in a server that created it ten minutes ago."""

    async def run() -> tuple[float, float]:
        clock = FakeClock()
        async with MemoryStore(clock=clock) as store:
            server = await build_server(store, clock=clock)
            client = Client(InProcess(server))
            await _create_claims(client, "warm", 200)
            gc.collect()
            tracemalloc.start()
            await _create_claims(client, "more", CLAIMS)
            clock.advance(600.0)
            await _create_claims(client, "last", 2)
            gc.collect()
            grown = tracemalloc.get_traced_memory()[0]
            tracemalloc.stop()
            records = (await store.list("/registry/resource.k8s.io/resourceclaims/")).records
            await server.close()
            return grown, sum(len(each.value) for each in records) / len(records)

    grown, size = uvloop.run(run())
    beyond = grown / CLAIMS - size
    return "memory of a claim beyond its JSON", f"{beyond / 1000:.2f} KB", "1.5 KB", f"JSON {size / 1000:.2f} KB"


async def _create_claims(client: Client, prefix: str, count: int) -> None:
    for number in range(count):
        await client.create(_claim(f"{prefix}-{number:05d}"))


def _claim(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(apiserver.claim(name))
    document["metadata"]["namespace"] = "default"
    return document


def long_list() -> Row:
    async def run(port: int) -> list[float]:
        connections = [await apiserver.Connection.open(port) for _ in range(16)]
        calls: list[apiserver.Call] = [each.call for each in connections]
        path = "/api/v1/namespaces/default/pods"
        await apiserver.repeat(calls, PODS, lambda call, n: call("POST", path, _pod(n)))
        times, _ = await apiserver.repeat(calls[:1], 20, lambda call, _: call("GET", path, b""))
        for connection in connections:
            connection.close()
        return sorted(times.all)

    with tempfile.TemporaryDirectory() as directory:
        tokens = Path(directory) / "tokens.csv"
        tokens.write_text(apiserver.TOKENS)
        arguments = ("--ephemeral", "--token-auth-file", str(tokens), "--disable-admission-plugins", "ServiceAccount")
        with apiserver.http_server(*arguments) as port:
            times = asyncio.run(run(port))
    return f"list of {PODS:,} pods over HTTP", f"{times[0] * 1e3:.0f} ms", "40 ms", f"median {times[10] * 1e3:.0f} ms"


def _pod(number: int) -> bytes:
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": {"cpu": "100m"}}}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number}"},
        "spec": {"containers": [container]},
    }
    return json.dumps(body).encode()


def heartbeats() -> Row:
    """Leases that are renewed, while many watch pods: the CPU time of one round, as a share of the time between two."""

    async def run() -> float:
        async with MemoryStore() as store:
            server = await build_server(store)
            client = Client(InProcess(server))
            streams = [await _watch_pods(server, number) for number in range(WATCHES)]
            await asyncio.gather(*(client.create(_lease(number)) for number in range(NODES)))
            held = [await client.get(LEASES, f"node-{n}", namespace="kube-node-lease") for n in range(NODES)]
            spare_the_collector()
            begun = time.process_time()
            for lease in held:
                spec = {**lease.document["spec"], "renewTime": "2026-01-01T00:00:10.000000Z"}
                await client.update(Partial({**lease.document, "spec": spec}, lease.view))
            spent = time.process_time() - begun
            for stream in streams:
                await stream.close()
            await server.close()
            return spent

    spent = uvloop.run(run())
    what = f"{WATCHES:,} watches and the heartbeats of {NODES:,} nodes"
    return what, f"{spent / PERIOD:.1%} of a core", "10 %", f"{spent / NODES * 1e6:.0f} µs a heartbeat"


async def _watch_pods(server: Server, number: int) -> EventStream:
    """As the agent of a node does; as the admin, who may have as many as there are."""
    query = (("watch", "1"), ("fieldSelector", f"spec.nodeName=node-{number}"))
    content = (await server.handle(Request(method="GET", path="/api/v1/pods", query=query, user=ADMIN))).content
    if not isinstance(content, EventStream):
        raise RuntimeError(content.encode().decode())
    return content


def _lease(number: int) -> dict[str, object]:
    metadata = {"name": f"node-{number}", "namespace": "kube-node-lease"}
    spec = {"holderIdentity": f"node-{number}", "leaseDurationSeconds": 40, "renewTime": "2026-01-01T00:00:00.000000Z"}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


MEASURES = (version, start, memory, long_list, heartbeats)


def main(parts: Sequence[str] = ()) -> None:
    chosen = [each for each in MEASURES if not parts or any(part in each.__name__ for part in parts)]
    publish("footprint", "What it takes to be there", COLUMNS, [measure() for measure in chosen])


if __name__ == "__main__":
    main(sys.argv[1:])
