"""`drakit demo`: a cluster, and one workload per capability of DRA, each told in two lines.

In:  nothing. The cluster is a `drakit up` of its own, in memory, on a free port, and ends with the demo.
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
    with TemporaryDirectory(prefix="drakit-demo-") as directory:
        failed = asyncio.run(_play(Path(directory)))
    seconds = time.monotonic() - begun
    typer.echo(f"\n{len(SCENES) - failed} of {len(SCENES)} scenes ran, in {seconds:.0f} s")
    if failed:
        raise typer.Exit(1)


async def _play(directory: Path) -> int:
    """How many scenes failed."""
    async with demo_cluster(directory) as kubeconfig:
        typer.echo("a cluster of two nodes is up: three GPUs, two network interfaces and 32 CPUs each, and a fabric\n")
        async with Client(Http(load_kubeconfig([kubeconfig]))) as client:
            return sum([not await _tell(scene, Stage(client, scene.name)) for scene in SCENES])


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
