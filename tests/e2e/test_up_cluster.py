"""`drakit up --cluster FILE`: many simulated nodes from a few templates, on which pods are placed as on real ones."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from drakit.client import CLAIMS, NODES, PODS, SLICES, Client
from tests.builders.loop import on_loop
from tests.builders.manifests import template
from tests.e2e.processes import ROOT, Running, apiserver
from tests.e2e.reached import PATIENCE, reached

EXAMPLE = ROOT / "docs" / "guides" / "clusters" / "training.yaml"
PODS_WANTED = 80


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A second run of the cluster: everything that is looked at here was stored, and came up again."""
    arguments = ("--data-dir", str(tmp_path_factory.mktemp("fleet")), "--cluster", str(EXAMPLE))
    with apiserver(*arguments, name="up") as first:
        begin(first)
    with apiserver(*arguments, name="up") as running:
        yield running


def workload() -> list[Any]:
    """A Deployment whose pods have four cards each: two on a node, and then the next one."""
    claims = [{"name": "g", "resourceClaimTemplateName": "four"}]
    container = {"name": "main", "image": "none", "resources": {"claims": [{"name": "g"}]}}
    labels = {"app": "train"}
    pods = {"metadata": {"labels": labels}, "spec": {"resourceClaims": claims, "containers": [container]}}
    spec = {"replicas": PODS_WANTED, "selector": {"matchLabels": labels}, "template": pods}
    metadata = {"name": "train", "namespace": "default"}
    return [
        template("four", deviceClassName="gpu.nvidia.com", count=4),
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec},
    ]


async def all_running(client: Client) -> dict[str, str]:
    """The node of each pod, once all run."""
    async with asyncio.timeout(2 * PATIENCE):
        while True:
            pods = [each.view for each in await client.list(PODS, namespace="default")]
            if len(pods) == PODS_WANTED and all(each.status.phase == "Running" for each in pods):
                return {each.metadata.name: each.spec.node_name for each in pods}
            await asyncio.sleep(0.2)


@on_loop
async def test_nodes_are_as_their_templates_say(up: Running) -> None:
    async with reached(up.kubeconfig) as client:
        nodes = {each.view.metadata.name: each.document for each in await client.list(NODES)}
        slices = Counter((each.spec.driver, len(each.spec.devices)) for each in await client.list(SLICES))
    assert len(nodes) == 63
    assert nodes["train-2"]["metadata"]["labels"]["topology.kubernetes.io/zone"] == "zone-b"
    assert nodes["train-2"]["status"]["capacity"]["cpu"] == "96"
    assert nodes["edge-1"]["spec"]["taints"] == [{"key": "example.com/edge", "effect": "NoSchedule"}]
    assert slices == {("gpu.nvidia.com", 8): 60, ("led.example.com", 2): 3}


@on_loop
async def begin(running: Running) -> None:
    async with reached(running.kubeconfig) as client:
        for each in workload():
            await client.create(each)
        await all_running(client)


@on_loop
async def test_pods_run_where_their_devices_are(up: Running) -> None:
    async with reached(up.kubeconfig) as client:
        nodes = await all_running(client)
        held = Counter(
            (each.pool, each.device)
            for claim in await client.list(CLAIMS)
            if claim.status.allocation is not None
            for each in claim.status.allocation.devices.results
        )
    assert len(held) == 4 * PODS_WANTED
    assert set(held.values()) == {1}
    assert set(nodes.values()) == {pool for pool, _ in held}


@on_loop
async def test_a_slice_that_somebody_deletes_is_published_again(up: Running) -> None:
    async with reached(up.kubeconfig) as client:
        [first, *_] = await client.list(SLICES)
        await client.delete(SLICES, first.metadata.name)
        async with asyncio.timeout(PATIENCE):
            while first.metadata.name not in {each.metadata.name for each in await client.list(SLICES)}:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
