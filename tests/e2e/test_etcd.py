"""Two API servers on one etcd, as processes: what one writes the other has, and either may die."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

import pytest

from drakit.base.errors import DrakitError
from drakit.client import CLAIMS, PODS, QUOTAS, SLICES, Client, load_kubeconfig
from drakit.client.transport.http import Http
from tests.builders.etcd import etcd_cluster
from tests.builders.loop import on_loop
from tests.e2e.processes import ROOT, Running, apiserver, controllers, following

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "node-a"},
    "status": {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "110"}},
}
DEVICES = [{"name": f"gpu-{number}"} for number in range(6)]
SLICE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "node-a-gpus"},
    "spec": {
        "driver": "gpu.example.com",
        "nodeName": "node-a",
        "pool": {"name": "node-a", "generation": 1, "resourceSliceCount": 1},
        "devices": DEVICES,
    },
}
CLASS = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}
QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "few", "namespace": "default"},
    "spec": {"hard": {"count/resourceclaims.resource.k8s.io": "6"}},
}


def claim_named(name: str) -> dict[str, object]:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [request]}},
    }


def pod_with(claim: str) -> dict[str, object]:
    container = {"name": "c", "image": "example.com/pause:1", "resources": {"claims": [{"name": "gpu"}]}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": claim, "namespace": "default"},
        "spec": {"containers": [container], "resourceClaims": [{"name": "gpu", "resourceClaimName": claim}]},
    }


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[tuple[Running, Running]]:
    """They share certificates and keys: a token or certificate of one is good for the other."""
    (tmp_path / "etcd").mkdir()
    with etcd_cluster(tmp_path / "etcd") as (member,):
        place = ("--data-dir", str(tmp_path / "data"), "--etcd-servers", member.client)
        one = apiserver(*place, "--kubeconfig", str(tmp_path / "one"), killed=True)
        other = apiserver(*place, "--kubeconfig", str(tmp_path / "other"))
        with one as first, other as second:
            yield first, second


def client_of(server: Running) -> Client:
    return Client(Http(load_kubeconfig([server.kubeconfig])))


async def create_all(client: Client, names: Sequence[str]) -> int:
    """Create claims until one is refused; how many were taken."""
    taken = 0
    for name in names:
        try:
            await client.create(claim_named(name))
        except DrakitError as error:
            assert "exceeded quota" in str(error)  # noqa: PT017 - every other refusal is a failure
        else:
            taken += 1
    return taken


async def until(what: Callable[[], Awaitable[object]]) -> None:
    while not await what():  # noqa: ASYNC110 - other processes tell of themselves by what they write
        await asyncio.sleep(0.05)


@on_loop
async def test_two_servers_are_one_api_and_either_may_die(servers: tuple[Running, Running]) -> None:
    one, other = servers
    async with client_of(one) as here, client_of(other) as there:
        # The controllers hang on the server that lives on, the scheduler too.
        with controllers(other.kubeconfig), following("scheduler", "--kubeconfig", str(other.kubeconfig)):
            for document in (NODE, SLICE, CLASS, QUOTA):
                await here.create(document)

            async def counted() -> object:
                quota = await there.get(QUOTAS, "few", namespace="default")
                return quota.view.status.hard

            await until(counted)
            names = [[f"{letter}{number}" for number in range(6)] for letter in "ab"]
            taken = await asyncio.gather(create_all(here, names[0]), create_all(there, names[1]))
            # The quota holds over both.
            assert sum(taken) == 6
            claims = [each.metadata.name for each in (await there.list(CLAIMS, namespace="default")).items]
            assert claims == [each.metadata.name for each in (await here.list(CLAIMS, namespace="default")).items]
            for name in claims:
                await here.create(pod_with(name))
            os.kill(one.pid, signal.SIGKILL)

            async def all_bound() -> object:
                return all(each.view.spec.node_name for each in (await there.list(PODS, namespace="default")).items)

            await until(all_bound)
        found = (await there.list(CLAIMS, namespace="default")).items
        held = [each.status.allocation.devices.results[0].device for each in found if each.status.allocation]
        assert sorted(held) == [device["name"] for device in DEVICES]


def test_an_etcd_that_is_away_is_one_line_and_an_exit_code(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "drakit", "apiserver", "--port", "0", "--data-dir", str(tmp_path)),
            *("--etcd-servers", "http://127.0.0.1:1"),
        ],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        timeout=60,
    )
    assert done.returncode == 3
    assert done.stderr.startswith("error: etcd does not answer")
    assert "Traceback" not in done.stderr


@on_loop
async def test_drivers_of_up_are_refused_nothing_while_the_cluster_starts(tmp_path: Path) -> None:
    """On etcd a role takes its time to be written: the drivers wait for theirs."""
    (tmp_path / "etcd").mkdir()
    audit = tmp_path / "audit.log"
    with etcd_cluster(tmp_path / "etcd") as (member,):
        flags = ("--data-dir", str(tmp_path / "data"), "--etcd-servers", member.client)
        with apiserver(*flags, "--nodes", "1", "--audit-log-path", str(audit), name="up") as up:
            async with client_of(up) as client:
                await until(lambda: _published(client))
    events = [json.loads(line) for line in audit.read_text().splitlines()]
    of_drivers = [
        each for each in events if each["user"]["username"].startswith("system:serviceaccount:drakit-drivers:")
    ]
    assert of_drivers
    assert [each["requestURI"] for each in of_drivers if each["responseStatus"]["code"] == 403] == []


async def _published(client: Client) -> bool:
    return bool((await client.list(SLICES)).items)
