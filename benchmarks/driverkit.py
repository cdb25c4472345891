"""The driver kit: claims prepared and unprepared through the sockets of a driver, and where the time goes.

`python -m benchmarks.driverkit` prints the table and keeps it in `benchmarks/results/driverkit.md`. Driver and API
server run in a process of their own; the caller is a plain gRPC client, one call at a time as for one pod, or several
at a time as for several pods. The kit's own share is what is left of a call after the driver's code, the API server,
the disk and waiting for other calls. On tmpfs a flush costs nothing: those rows show what the kit does with files, the
others what the disk does.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc
import msgspec

from benchmarks.report import publish
from drakit.api import Device, ResourceClaim, from_plain
from drakit.apiserver import build_server
from drakit.base.clock import RealClock
from drakit.client import CLAIMS, Client, InProcess
from drakit.driverkit import (
    AllocatedClaim,
    Driver,
    KubeletPlugin,
    PluginSettings,
    Prepared,
    PreparedClaim,
    Unprepared,
    each,
)
from drakit.pluginapi import dra_v1_pb2 as dra
from drakit.pluginapi.dra_v1_pb2_grpc import DRAPluginStub
from drakit.store import MemoryStore

CLAIMS_COUNT = 1000
DRIVER = "bench.example.com"
NODE = "node-1"
PARTS = ("author", "server", "disk", "waiting", "own")
PREPARE, UNPREPARE = "NodePrepareResources", "NodeUnprepareResources"
Row = list[str]


class BenchDriver(Driver):
    """As little as a driver can do."""

    name = DRIVER

    def devices(self) -> list[Device]:
        return [Device(name=f"device-{number}") for number in range(128)]

    async def prepare(self, claims: Sequence[AllocatedClaim]) -> Prepared:
        return await each(claims, lambda claim: [device.ready(env={"D": device.device}) for device in claim.devices])

    async def unprepare(self, _: Sequence[PreparedClaim]) -> Unprepared:
        return {}


# The process of driver and server


async def serve(root: Path, count: int) -> None:
    clock = RealClock()
    async with MemoryStore(clock=clock) as store:
        client = Client(InProcess(await build_server(store, clock=clock)), clock=clock)
        await client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
        uids = [await create_claim(client, number) for number in range(count)]
        settings = PluginSettings(
            node_name=NODE, plugin_dir=root / "plugins", registry_dir=root / "registry", cdi_dir=root / "cdi"
        )
        plugin = KubeletPlugin(BenchDriver(), client, settings)
        async with plugin.running():
            print(msgspec.json.encode({"socket": str(plugin.paths.service), "uids": uids}).decode(), flush=True)
            await asyncio.to_thread(sys.stdin.readline)
            print(msgspec.json.encode(parts_of(plugin)).decode(), flush=True)


async def create_claim(client: Client, number: int) -> str:
    request = {"name": "device", "exactly": {"deviceClassName": DRIVER}}
    document = {
        "metadata": {"name": f"claim-{number}", "namespace": "default"},
        "spec": {"devices": {"requests": [request]}},
    }
    made = await client.create(from_plain(ResourceClaim, document))
    result = {"request": "device", "driver": DRIVER, "pool": NODE, "device": f"device-{number % 128}"}
    claim = await client.get(CLAIMS, f"claim-{number}", namespace="default")
    await client.patch_status(claim, {"allocation": {"devices": {"results": [result]}}})
    return made.metadata.uid


def parts_of(plugin: KubeletPlugin) -> dict[str, dict[str, float]]:
    """Seconds by method and part."""
    value = plugin.registry.get_sample_value
    name = "drakit_driver_call_part_seconds_total"
    return {
        method: {
            part: value(name, {"driver_name": DRIVER, "method_name": method, "part": part}) or 0.0 for part in PARTS
        }
        for method in (PREPARE, UNPREPARE)
    }


# The caller


@contextmanager
def driver_process(root: Path, count: int) -> Iterator[tuple[subprocess.Popen[str], dict[str, list[str]]]]:
    (root / "registry").mkdir()
    command = [sys.executable, "-m", "benchmarks.driverkit", "serve", str(root), str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, msgspec.json.decode(process.stdout.readline())


def measure(root: Path, tasks: int) -> dict[str, tuple[list[float], float, dict[str, float]]]:
    """By method: seconds of each call, of all of them, and per part."""
    with driver_process(root, CLAIMS_COUNT) as (process, told):
        claims = [
            dra.Claim(namespace="default", name=f"claim-{number}", uid=uid) for number, uid in enumerate(told["uids"])
        ]
        with grpc.insecure_channel(f"unix://{told['socket']}") as channel:
            stub = DRAPluginStub(channel)
            stub.NodePrepareResources(dra.NodePrepareResourcesRequest())
            timed = {
                PREPARE: run(claims, tasks, lambda claim: check(claim, stub.NodePrepareResources(
                    dra.NodePrepareResourcesRequest(claims=[claim])))),
                UNPREPARE: run(claims, tasks, lambda claim: check(claim, stub.NodeUnprepareResources(
                    dra.NodeUnprepareResourcesRequest(claims=[claim])))),
            }  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        parts = msgspec.json.decode(process.stdout.readline())
    return {method: (*timed[method], parts[method]) for method in timed}


def check(claim: dra.Claim, answer: dra.NodePrepareResourcesResponse | dra.NodeUnprepareResourcesResponse) -> None:
    if answer.claims[claim.uid].error:
        raise RuntimeError(answer.claims[claim.uid].error)


def run(claims: Sequence[dra.Claim], tasks: int, call: Callable[[dra.Claim], None]) -> tuple[list[float], float]:
    def timed(claim: dra.Claim) -> float:
        begun = time.perf_counter()
        call(claim)
        return time.perf_counter() - begun

    begun = time.perf_counter()
    with ThreadPoolExecutor(tasks) as pool:
        seconds = list(pool.map(timed, claims))
    return seconds, time.perf_counter() - begun


def rows(where: str, root: Path, tasks: int) -> Iterator[Row]:
    for method, (calls, total, parts) in measure(root, tasks).items():
        ordered = sorted(calls)
        yield [
            f"{method.removeprefix('Node').removesuffix('Resources').lower()}, {where}, {tasks} at a time",
            f"{len(calls) / total:,.0f}",
            f"{ordered[len(ordered) // 2] * 1e3:.2f} ms",
            f"{ordered[int(len(ordered) * 0.99)] * 1e3:.2f} ms",
            f"{parts['own'] / len(calls) * 1e3:.2f} ms",
            f"{parts['disk'] / len(calls) * 1e3:.2f} ms",
            f"{parts['server'] / len(calls) * 1e3:.2f} ms",
        ]


def main() -> None:
    table: list[Row] = []
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    for where, place in (("tmpfs", memory), ("disk", None)):
        for tasks in (1, 8):
            with tempfile.TemporaryDirectory(prefix="dkb-", dir=place) as directory:
                table.extend(rows(where, Path(directory), tasks))
    columns = ["1,000 claims", "calls per s", "p50", "p99", "kit's own share", "disk", "API server"]
    publish("driverkit", "Driver kit: prepare and unprepare through the sockets", columns, table)


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        asyncio.run(serve(Path(sys.argv[2]), int(sys.argv[3])))
    else:
        main()
