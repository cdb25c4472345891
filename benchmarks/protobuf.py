"""Lists of 1,000 pods in JSON and protobuf, the first one and those after it. Run as `python -m benchmarks.protobuf`.

Every round has a server that has never shown these pods: in process one that has no patterns yet, over HTTP a new
process on the same file. JSON and protobuf take turns. Times are CPU time of the server, the median of all rounds.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.apiserver import ALWAYS, TOKENS
from benchmarks.report import publish
from drakit.api.codec.protobuf import CONTENT_TYPE as PROTOBUF
from drakit.api.codec.protobuf import envelope
from drakit.api.exchange import JSON, Request
from drakit.apiserver import Server, build_server
from drakit.cli.commands.storecopy import DATABASE
from drakit.store import SQLiteStore, Store

PODS = "/api/v1/namespaces/default/pods"
COUNT = 1_000
ROUNDS = 9
COLUMNS = ("list of 1,000 pods", "where", "JSON", "protobuf", "protobuf / JSON", "worst round")
STRATEGIC = "application/strategic-merge-patch+json"

Row = tuple[str, ...]
Times = dict[tuple[str, str], list[float]]


def pod(number: int) -> dict[str, Any]:
    """As a controller creates it: a template's pod, of which the name and one variable are its own."""
    owner = {
        "apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "8a7b3c1e-6a0b-4f9e-9d0e-0f1f5a3b2c1d",
        "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip
    node_name = {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    container = {
        "name": "main", "image": "registry.example.com/train:1.4", "command": ["python", "train.py"],
        "args": ["--epochs", "10"], "env": [{"name": "RANK", "value": str(number)}, node_name],
        "ports": [{"containerPort": 8080, "name": "http"}],
        "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"memory": "2Gi"}},
    }  # fmt: skip
    metadata = {"name": name(number), "labels": {"app": "train", "job-name": "train"}, "ownerReferences": [owner]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def name(number: int) -> str:
    return f"train-{number:04}"


def status(number: int) -> dict[str, Any]:
    """As a kubelet writes it."""
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    types = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    condition = {"status": "True", "lastProbeTime": None, "lastTransitionTime": now, "observedGeneration": 1}
    container = {
        "name": "main", "state": {"running": {"startedAt": now}}, "lastState": {}, "ready": True, "restartCount": 0,
        "image": "registry.example.com/train:1.4", "imageID": f"registry.example.com/train@sha256:{'ab' * 32}",
        "containerID": f"containerd://{number * 7919:064x}", "started": True,
    }  # fmt: skip
    host, own = f"10.0.0.{number % 250}", f"10.1.{number // 250}.{number % 250}"
    return {
        "phase": "Running", "conditions": [{"type": each, **condition} for each in types], "hostIP": host,
        "hostIPs": [{"ip": host}], "podIP": own, "podIPs": [{"ip": own}], "startTime": now, "qosClass": "Burstable",
        "observedGeneration": 1, "containerStatuses": [container],
    }  # fmt: skip


async def fill(server: Server) -> None:
    async def call(method: str, path: str, body: Any, agent: str, content: str = JSON) -> None:
        headers = {"content-type": content, "user-agent": agent}
        request = Request(method=method, path=path, headers=headers, body=json.dumps(body).encode())
        response = await server.handle(request)
        if response.code >= 300:
            raise RuntimeError(response.content.encode().decode())

    await call("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}, "kubelet/1")
    for number in range(COUNT):
        own, target = f"{PODS}/{name(number)}", {"kind": "Node", "name": "n1"}
        await call("POST", PODS, pod(number), "kube-controller-manager/1")
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name(number)}, "target": target}
        await call("POST", f"{own}/binding", binding, "kube-scheduler/1")
        await call("PATCH", f"{own}/status", {"status": status(number)}, "kubelet/1", STRATEGIC)


async def listed(server: Server, accept: str) -> float:
    start = time.process_time()
    response = await server.handle(Request(method="GET", path=PODS, headers={"accept": accept}))
    if len(response.content.encode()) < COUNT:
        raise RuntimeError("no list of pods")
    return time.process_time() - start


async def in_process(store: Store, times: Times) -> None:
    for accept in (JSON, PROTOBUF):
        server = await build_server(store)
        envelope._patterns.cache_clear()
        times["first", accept].append(await listed(server, accept))
        times["repeated", accept].append(min([await listed(server, accept) for _ in range(3)]))


def over_http(directory: Path, times: Times) -> None:
    for accept in (JSON, PROTOBUF):
        command = [sys.executable, "-m", "drakit", "apiserver", "--insecure", "--port", "0"]
        command += ["--data-dir", str(directory / "data"), "--token-auth-file", str(directory / "tokens.csv")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                line = process.stdout.readline() if process.stdout else ""
                port = int(line.split(",")[0].rpartition(":")[2])
                spent = [asyncio.run(fetched(port, process.pid, accept)) for _ in range(4)]
            finally:
                process.terminate()
        times["first", accept].append(spent[0])
        times["repeated", accept].append(min(spent[1:]))


async def fetched(port: int, pid: int, accept: str) -> float:
    """Seconds of the server's processor for one list."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 26)
    # A small request first: to open the connection and to know the user is no part of the list.
    await _get(reader, writer, "/version", JSON)
    before = _cpu(pid)
    data = await _get(reader, writer, PODS, accept)
    spent = _cpu(pid) - before
    writer.close()
    if len(data) < COUNT:
        raise RuntimeError(data.decode())
    return spent


async def _get(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, accept: str) -> bytes:
    writer.write(f"GET {path} HTTP/1.1\r\n{ALWAYS}accept: {accept}\r\n\r\n".encode())
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    return await reader.readexactly(int(head.partition(b"content-length:")[2].split(b"\r\n")[0]))


def _cpu(pid: int) -> float:
    """Seconds that all threads of a process have run."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def rows(where: str, times: Times) -> list[Row]:
    made = []
    for which in ("first", "repeated"):
        plain, other = times[which, JSON], times[which, PROTOBUF]
        ratios = [right / left for left, right in zip(plain, other, strict=True)]
        middle = [f"{statistics.median(each) * 1e3:.1f} ms" for each in (plain, other)]
        made.append((which, where, *middle, f"{statistics.median(ratios):.2f}", f"{max(ratios):.2f}"))
    return made


def _times() -> Times:
    return {(which, accept): [] for which in ("first", "repeated") for accept in (JSON, PROTOBUF)}


async def run(directory: Path, rounds: int) -> list[Row]:
    inside, outside = _times(), _times()
    (directory / "tokens.csv").write_text(TOKENS)
    (directory / "data").mkdir(mode=0o700)
    async with await SQLiteStore.open(directory / "data" / DATABASE) as store:
        await fill(await build_server(store))
        for _ in range(rounds):
            await in_process(store, inside)
    for _ in range(rounds):
        await asyncio.to_thread(over_http, directory, outside)
    return [*rows("in process", inside), *rows("HTTP, a new process", outside)]


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        table = asyncio.run(run(Path(directory), ROUNDS))
    publish("protobuf", "Lists in JSON and protobuf, CPU time of the server", COLUMNS, table)


if __name__ == "__main__":
    main()
