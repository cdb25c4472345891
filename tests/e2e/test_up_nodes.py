"""`drakit up` with nodes: a pod really runs, with its devices, and everything is there again after a restart."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from drakit.client import CLAIMS, NODES, PODS, SLICES, Client
from tests.builders.loop import on_loop
from tests.builders.manifests import pod
from tests.e2e.commands import run
from tests.e2e.processes import ROOT, Running, apiserver, command
from tests.e2e.reached import PATIENCE, reached, until

FIRST_EXAMPLE = ROOT / "examples" / "gpu-pod.yaml"


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with apiserver("--data-dir", str(tmp_path_factory.mktemp("up")), "--nodes", "2", name="up") as running:
        yield running


async def apply(client: Client, documents: list[Any]) -> None:
    for each in documents:
        await client.apply(each, manager="test", force=True)


def running_pod(name: str) -> Any:
    return lambda pod: pod.view.metadata.name == name and pod.view.status.phase == "Running"


@on_loop
async def test_the_first_example_runs_and_its_log_shows_its_device(up: Running) -> None:
    async with reached(up.kubeconfig) as client:
        await apply(client, list(yaml.safe_load_all(FIRST_EXAMPLE.read_text())))
        await until(client, PODS, running_pod("gpu-pod"), namespace="default")
        [claim] = await client.list(CLAIMS, namespace="default")
        allocation = claim.status.allocation
        assert allocation is not None
        device = allocation.devices.results[0].device
        log = await _logged(client, f"GPU_DEVICE_0={device}")
        assert "HOSTNAME=gpu-pod" in log


async def _logged(client: Client, wanted: str) -> str:
    """The log, once the line is in it: the container may have only just begun."""
    path = "/api/v1/namespaces/default/pods/gpu-pod/log"
    async with asyncio.timeout(PATIENCE):
        while wanted not in (log := await client.text(path)):  # noqa: ASYNC110 - nobody tells when a line is written
            await asyncio.sleep(0.05)
    return log


@on_loop
async def test_every_node_is_ready_and_publishes_its_devices(up: Running) -> None:
    async with reached(up.kubeconfig) as client:
        nodes = await client.list(NODES)
        assert [node.view.metadata.name for node in nodes] == ["node-1", "node-2"]
        for node in nodes:
            [ready] = [each for each in node.view.status.conditions if each.type == "Ready"]
            assert ready.status == "True"
            assert node.view.metadata.labels["kubernetes.io/hostname"] == node.view.metadata.name
        drivers = {(each.spec.node_name, each.spec.driver) for each in await client.list(SLICES)}
        assert {("node-1", "gpu.example.com"), ("node-2", "gpu.example.com")} <= drivers


def test_pods_that_restart_are_there_again_after_the_cluster_was_stopped(tmp_path: Path) -> None:
    [*around, example] = yaml.safe_load_all(FIRST_EXAMPLE.read_text())
    example["spec"]["restartPolicy"] = "Always"

    @on_loop
    async def begin(kubeconfig: Path) -> None:
        async with reached(kubeconfig) as client:
            await apply(client, [*around, example])
            await until(client, PODS, running_pod("gpu-pod"), namespace="default")

    @on_loop
    async def look(kubeconfig: Path) -> None:
        def restarted(pod: Any) -> bool:
            [status] = pod.document["status"]["containerStatuses"]
            return bool(status["restartCount"] == 1 and status["state"].get("running"))

        async with reached(kubeconfig) as client:
            await until(client, PODS, restarted, namespace="default")

    with apiserver("--data-dir", str(tmp_path), name="up") as first:
        begin(first.kubeconfig)
    assert _processes_in(tmp_path) == []
    with apiserver("--data-dir", str(tmp_path), name="up") as second:
        look(second.kubeconfig)
    assert _processes_in(tmp_path) == []


def test_a_pod_that_does_not_want_to_end_does_not_keep_the_cluster_from_stopping(tmp_path: Path) -> None:
    """It has a second in place of its own ten minutes; `apiserver` would not wait that long."""
    stubborn = pod("stubborn")
    stubborn["spec"]["terminationGracePeriodSeconds"] = 600
    stubborn["spec"]["containers"][0]["command"] = ["sh", "-c", "trap '' TERM INT; while :; do sleep 1; done"]

    @on_loop
    async def begin(kubeconfig: Path) -> None:
        async with reached(kubeconfig) as client:
            await client.create(stubborn)
            await until(client, PODS, running_pod("stubborn"), namespace="default")

    with apiserver("--data-dir", str(tmp_path), name="up") as running:
        begin(running.kubeconfig)
        assert _processes_in(tmp_path) != []
    assert _processes_in(tmp_path) == []


def _processes_in(directory: Path) -> list[str]:
    """Processes whose working directory is below that of the cluster."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            place = str((each / "cwd").readlink())
        except OSError:
            continue
        if place.startswith(str(directory)):
            found.append(f"{each.name} {place}")
    return found


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--profile", "h200"), "there is no profile 'h200'"),
        (("--profile", "h100-8", "--gpus", "9"), "the profile has 8 cards, not 9"),
        (("--bind-address", "0.0.0.0"), "which others may reach"),
    ],
)
def test_what_cannot_be_is_told_in_one_line(flags: tuple[str, ...], said: str) -> None:
    code, output = run(command("--ephemeral", "--port", "0", *flags, name="up"))
    assert said in output
    assert "Traceback" not in output
    assert code in (2, 3)
