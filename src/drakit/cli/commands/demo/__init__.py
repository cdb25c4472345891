"""`drakit demo`: a cluster, and one workload per capability of DRA, each told in two lines.

In:  nothing. The cluster is a `drakit up` of its own, on a free port, and ends with the demo.
Out: per scene what it shows, and what the containers print of the devices that they got. Exit code 0 when all ran.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import typer

from drakit.cli.commands.demo.cluster import demo_cluster
from drakit.cli.commands.demo.scenes import SCENES, Scene, SceneFailed
from drakit.cli.commands.demo.stage import Stage
from drakit.client import Client, load_kubeconfig
from drakit.client.transport.http import Http

_WIDTH = 20


def demo() -> None:
    """Run a cluster with two nodes, and one workload per capability of dynamic resource allocation."""
    begun = time.monotonic()
    with TemporaryDirectory(prefix="drakit-demo-", ignore_cleanup_errors=True) as directory:
        failed = asyncio.run(_play(Path(directory)))
    seconds = time.monotonic() - begun
    ran = [scene.name for scene in SCENES if scene.name not in failed]
    typer.echo(f"\n{len(ran)} of {len(SCENES)} scenes ran, in {seconds:.0f} s; nothing is left of them")
    if failed:
        typer.echo(f"failed: {', '.join(failed)}")
        raise typer.Exit(1)


async def _play(directory: Path) -> list[str]:
    """The scenes that failed."""
    async with demo_cluster(directory, tell=typer.echo) as cluster:
        typer.echo("a cluster of two nodes is up: three GPUs, two network interfaces and 32 CPUs each, and a fabric")
        typer.echo(f"(process {cluster.pid}; look on with kubectl --kubeconfig {cluster.kubeconfig})\n")
        async with Client(Http(load_kubeconfig([cluster.kubeconfig]))) as client:
            return [scene.name for scene in SCENES if not await _tell(scene, Stage(client, scene.name))]


async def _tell(scene: Scene, stage: Stage) -> bool:
    typer.echo(f"{scene.name:<{_WIDTH}}{scene.about}")
    try:
        async with stage:
            lines, ran = await scene.play(stage), True
    except SceneFailed as failure:
        lines, ran = [f"FAILED: {failure}"], False
    for line in lines:
        typer.echo(f"{'':<{_WIDTH}}{line}")
    return ran
