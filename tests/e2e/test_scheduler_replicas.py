"""Two `drakit scheduler` processes, of which one leads: when it ends, however, the other goes on where it stood."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from pathlib import Path

import pytest

from drakit.client import CLAIMS, PODS, Client
from tests.builders.podmanifests import by_name, claim, device_class, node, pod, resource_slice
from tests.e2e.controllers import show
from tests.e2e.processes import apiserver, following
from tests.e2e.reached import PATIENCE, reached

COUNT = 60
DEVICES = [f"d{number}" for number in range(COUNT)]
HASTY = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaseDuration: 3s, renewDeadline: 2s, retryPeriod: 200ms}
"""
LEADS = 'leader_election_master_status{name="kube-scheduler"}'


async def _prepare(kubeconfig: Path) -> None:
    async with reached(kubeconfig) as client:
        await client.create(node("node-1"))
        await client.create(device_class())
        await client.create(resource_slice("slice", *DEVICES))
        for number in range(COUNT):
            await client.create(claim(f"c{number}"))


async def _end_in_the_middle(kubeconfig: Path, leader: subprocess.Popen[str], how: signal.Signals) -> None:
    async with reached(kubeconfig) as client:
        creating = asyncio.create_task(_create(client))
        await _until_bound(client, COUNT // 6)
        leader.send_signal(how)
        await creating
        bound = await _until_bound(client, COUNT)
        assert bound == {f"p{number}" for number in range(COUNT)}
        claims = list(await client.list(CLAIMS, namespace="default"))
        allocations = [each.status.allocation for each in claims if each.status.allocation]
        given = [result.device for each in allocations for result in each.devices.results]
        assert sorted(given) == sorted(DEVICES)
        users = {each.metadata.name: [user.name for user in each.status.reserved_for] for each in claims}
        assert users == {f"c{number}": [f"p{number}"] for number in range(COUNT)}


async def _create(client: Client) -> None:
    for number in range(COUNT):
        await client.create(pod(f"p{number}", claims=[by_name(f"c{number}")]))


async def _until_bound(client: Client, count: int) -> set[str]:
    """The pods that are bound, as soon as there are so many."""
    bound: set[str] = set()
    async with asyncio.timeout(PATIENCE), client.watch(PODS, namespace="default", initial=True) as changes:
        async for change in changes:
            if change.object is not None and change.object.view.spec.node_name:
                bound.add(change.object.view.metadata.name)
            if len(bound) >= count:
                return bound
    raise AssertionError("the watch ended before that came")


@pytest.mark.slow
@pytest.mark.parametrize(("how", "code"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, 0)])
def test_when_the_leader_ends_in_the_middle_no_pod_is_lost_and_no_device_given_twice(
    how: signal.Signals, code: int, tmp_path: Path
) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(HASTY)
    with apiserver("--data-dir", str(tmp_path / "data")) as running:
        asyncio.run(_prepare(running.kubeconfig))
        replica = ("scheduler", "--kubeconfig", str(running.kubeconfig), "--config", str(config))
        with following(*replica, killed=True) as first, following(*replica) as second:
            assert f"{LEADS} 0.0" in show(second.shown, "/metrics")[1]
            assert show(second.shown, "/readyz") == (200, "ok")
            asyncio.run(_end_in_the_middle(running.kubeconfig, first.process, how))
            assert first.process.wait(20) == code
            assert f"{LEADS} 1.0" in show(second.shown, "/metrics")[1]
