"""Everything that was measured with Kubernetes too, in one table: `python -m benchmarks`, which is `make bench`.

In:  what Kubernetes v1.36.4 (Go 1.26, etcd) took on a machine of 2 cores.
Out: the same work here, and how many times better; the target is a number of times, too.

Each row runs in a process of its own. `python -m benchmarks anchors PART…` measures the rows that contain a part.
"""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import uvloop
from rich.progress import track

from benchmarks import apiserver, cases, cel
from benchmarks.report import publish
from benchmarks.scheduling.clusters import Measured, cluster
from benchmarks.scheduling.workloads import WORKLOADS
from drakit.api import Device, from_plain
from drakit.selectors import Selector, bind

COLUMNS = ("work", "Kubernetes", "drakit", "times better", "target")
_CREATED = 3_000
_READ = 6_000
_LISTED = 300


class Anchor(NamedTuple):
    """A piece of work with the figure of Kubernetes. Rates are better when larger, all else when smaller.

    Where Kubernetes places no pod at all, `upstream` is 0 and the target is a figure of our own.
    """

    upstream: float
    unit: str
    target: float
    measure: Callable[[], float]
    """Our figure, in the same unit."""

    def ratio(self, ours: float) -> float:
        """How many times better; beside a Kubernetes that places none, what we have itself."""
        if not self.upstream:
            return ours
        return ours / self.upstream if self.unit.endswith("/s") else self.upstream / ours


def _selector(index: int) -> float:
    bound = bind(cel.GPU, from_plain(Device, cel.DEVICE))
    return cel.per_call(Selector(cel.CASES[index].expression).evaluate, bound) * 1e6


def _pass(kind: str, *, selective: bool = False) -> float:
    return cases.passes(kind, again=True, selective=selective) * 1e3


def _search(wanted_devices: int, devices: int) -> float:
    from benchmarks import allocator as bench

    wanted = bench.claim(bench.request("a", wanted_devices), bench.request("b", 1, "device.driver == 'nobody'"))
    inventory = bench.cluster(1, devices)
    bench.solve(inventory, wanted)
    return bench.solve(inventory, wanted)[0] * 1e3


def _pods(name: str, size: str, *, sqlite: bool) -> float:
    workload = next(each for each in WORKLOADS if (each.name, each.size) == (name, size))

    async def run() -> Measured:
        async with cluster(sqlite=sqlite) as made:
            return await workload.run(made)

    return uvloop.run(run()).rate


def _served(what: str) -> float:
    """A server process with TLS and SQLite, and 16 connections from this one."""

    async def run(port: int) -> float:
        tls = ssl.create_default_context()
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        connections = [await apiserver.Connection.open(port, tls=tls) for _ in range(apiserver.WRITERS)]
        calls: list[apiserver.Call] = [each.call for each in connections]
        times, took = await apiserver.repeat(
            calls, _CREATED, lambda call, n: call("POST", apiserver.CLAIMS, apiserver.claim(f"c{n}"))
        )
        count = {"get": _READ, "list": _LISTED}.get(what, _CREATED)
        path = f"{apiserver.CLAIMS}/c7" if what == "get" else f"{apiserver.CLAIMS}?limit=500"
        if what in ("get", "list"):
            times, took = await apiserver.repeat(calls, count, lambda call, _: call("GET", path, b""))
        for connection in connections:
            connection.close()
        return times.late * 1e3 if what == "p99" else count / took

    with tempfile.TemporaryDirectory() as directory:
        tokens = Path(directory) / "tokens.csv"
        tokens.write_text(apiserver.TOKENS)
        arguments = ("--data-dir", str(Path(directory) / "data"), "--token-auth-file", str(tokens))
        with apiserver.http_server(*arguments, insecure=False) as port:
            return asyncio.run(run(port))


_FILL, _STEADY = "SchedulingWithResourceClaimTemplate", "SteadyStateClusterResourceClaimTemplate"
_SMALL, _LARGE, _HALF = "2000 pods, 100 nodes x 20", "5000 pods, 500 nodes x 10", "500 nodes x 10, half in use"
_WIDE = "2000 pods, 100 nodes, 2000 pools"

ANCHORS: dict[str, Anchor] = {
    **{
        f"selector: {each.name}": Anchor(each.upstream, "µs", 30, partial(_selector, index))
        for index, each in enumerate(cel.CASES)
    },
    "allocator: 1 GPU, 500 nodes of 8, half in use": Anchor(22, "ms", 20, partial(_pass, "half")),
    "allocator: the same with a selector on model and memory": Anchor(
        44, "ms", 20, partial(_pass, "half", selective=True)
    ),
    "allocator: 4 of 8 with matchAttribute, 500 empty nodes": Anchor(94, "ms", 20, partial(_pass, "empty")),
    "allocator: 1 GPU, 500 nodes, all in use": Anchor(3.2, "ms", 3, partial(_pass, "full")),
    "allocator: 6 of 16, then a request that nothing matches": Anchor(101, "ms", 101, partial(_search, 6, 16)),
    # Kubernetes gives up after 10 s.
    "allocator: 8 of 32, then a request that nothing matches": Anchor(10_000, "ms", 2000, partial(_search, 8, 32)),
    f"pods: {_FILL}, {_SMALL}, SQLite": Anchor(79, "pods/s", 10, partial(_pods, _FILL, _SMALL, sqlite=True)),
    f"pods: {_FILL}, {_SMALL}, memory": Anchor(79, "pods/s", 10, partial(_pods, _FILL, _SMALL, sqlite=False)),
    f"pods: {_FILL}, {_LARGE}, SQLite": Anchor(31, "pods/s", 10, partial(_pods, _FILL, _LARGE, sqlite=True)),
    f"pods: {_STEADY}, {_HALF}, SQLite": Anchor(25, "pods/s", 10, partial(_pods, _STEADY, _HALF, sqlite=True)),
    f"pods: ConsumableCapacity, {_WIDE}, memory": Anchor(
        0, "pods/s", 500, partial(_pods, "ConsumableCapacity", _WIDE, sqlite=False)
    ),
    f"pods: Partitionable, {_WIDE}, memory": Anchor(
        0, "pods/s", 500, partial(_pods, "Partitionable", _WIDE, sqlite=False)
    ),
    "server: create a claim, TLS, SQLite, 16 connections": Anchor(1113, "/s", 4, partial(_served, "create")),
    "server: the same, 99th percentile": Anchor(40, "ms", 1, partial(_served, "p99")),
    "server: get a claim, TLS, 16 connections": Anchor(3978, "/s", 4, partial(_served, "get")),
    "server: list with limit 500, TLS, 16 connections": Anchor(160, "/s", 14, partial(_served, "list")),
}


def row(name: str) -> tuple[str, ...]:
    anchor = ANCHORS[name]
    # A process each: no row pays for the memory of another.
    command = [sys.executable, "-m", "benchmarks.anchors", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    upstream, target = shown(anchor)
    if done.returncode:
        print(f"{name}:\n{done.stderr}", file=sys.stderr)
        return name, upstream, "failed", "", target
    ours = float(done.stdout)
    ratio = anchor.ratio(ours)
    return (
        name,
        upstream,
        f"{_rounded(ours)} {anchor.unit}",
        f"{ratio:.1f} ×" if anchor.upstream else "",
        f"{target}{', met' * (ratio >= anchor.target)}",
    )


def shown(anchor: Anchor) -> tuple[str, str]:
    """The figure of Kubernetes, and the target."""
    if not anchor.upstream:
        return "places none", f"{anchor.target:g} {anchor.unit}"
    return f"{_rounded(anchor.upstream)} {anchor.unit}", f"{anchor.target:g} ×"


def _rounded(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def main(parts: Sequence[str] = ()) -> None:
    chosen = [name for name in ANCHORS if not parts or any(part in name for part in parts)]
    rows = [row(name) for name in track(chosen, description="rows", transient=True)]
    publish("anchors", "The same work by Kubernetes and by drakit", COLUMNS, rows)


if __name__ == "__main__":
    print(ANCHORS[sys.argv[1]].measure())
