"""`drakit scheduler` as a process with the rights that a scheduler has, and the scheduler of `drakit up`."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from drakit.client import CLAIMS, PODS
from tests.builders.podmanifests import by_name, by_template, claim, device_class, node, pod, resource_slice, template
from tests.e2e.controllers import show
from tests.e2e.processes import ROOT, Running, apiserver, command, following
from tests.e2e.reached import reached, until

GATES = ("--feature-gates", "AllAlpha=true,AllBeta=true")
SCHEDULER = "system:kube-scheduler"


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Running]:
    """A server without a scheduler, which knows one by its token."""
    tokens = tmp_path / "tokens.csv"
    tokens.write_text(f"scheduler-token,{SCHEDULER},1\n")
    with apiserver(
        "--data-dir", str(tmp_path / "data"), "--token-auth-file", str(tokens),
        "--audit-log-path", str(tmp_path / "audit"), *GATES,
    ) as running:  # fmt: skip
        yield running


async def _bind_two(alone: Running) -> None:
    async with reached(alone.kubeconfig) as client:
        await client.create(node("node-1"))
        await client.create(device_class())
        await client.create(resource_slice("slice", "d0"))
        await client.create(claim("c"))
        await client.create(pod("plain"))
        await client.create(pod("p", claims=[by_name("c")]))
        for name in ("plain", "p"):
            await until(client, PODS, _is_bound(name), namespace="default")
        held = await client.get(CLAIMS, "c", namespace="default")
        assert [each.name for each in held.status.reserved_for] == ["p"]


def _is_bound(name: str) -> Callable[[Any], object]:
    return lambda each: each.view.metadata.name == name and each.view.spec.node_name == "node-1"


def test_pods_are_bound_with_the_rights_of_a_scheduler_and_figures_are_shown(alone: Running, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("scheduler-token")
    authority = alone.kubeconfig.parent / "pki" / "ca.crt"
    reach = ("--master", alone.url, "--token-file", str(token), "--certificate-authority", str(authority))
    with following("scheduler", *reach, *GATES) as working:
        asyncio.run(_bind_two(alone))
        assert show(working.shown, "/readyz") == (200, "ok")
        figures = show(working.shown, "/metrics")[1].splitlines()
        assert not any("_created" in figure for figure in figures)
        assert 'leader_election_master_status{name="kube-scheduler"} 1.0' in figures
        attempts = 'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 2.0'
        assert attempts in figures
    lines = [json.loads(line) for line in (tmp_path / "audit").read_text().splitlines()]
    refused = [line["requestURI"] for line in lines if line["responseStatus"]["code"] == 403]
    assert refused == []
    bound = {
        line["user"]["username"] for line in lines if (line.get("objectRef") or {}).get("subresource") == "binding"
    }
    assert bound == {SCHEDULER}


async def _bind_one_of_a_template(running: Running) -> None:
    async with reached(running.kubeconfig) as client:
        await client.create(node("node-1"))
        await client.create(device_class())
        await client.create(resource_slice("slice", "d0"))
        await client.create(template())
        await client.create(pod("p", claims=[by_template()]))
        await until(client, PODS, _is_bound("p"), namespace="default")
        figures = await client.text("/metrics")
        assert 'scheduler_pending_pods{queue="active"} 0.0' in figures
        assert "_created" not in figures


def test_a_pod_with_a_claim_template_is_bound_in_drakit_up() -> None:
    with apiserver("--ephemeral", "--nodes", "0", name="up") as running:
        asyncio.run(_bind_one_of_a_template(running))


def test_a_wrong_configuration_is_a_message_and_no_traceback(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{schedulerNam: x}]\n"
    )
    started = command("--port", "0", "--config", str(file), "--master", "http://127.0.0.1:1", name="scheduler")
    done = subprocess.run(started, capture_output=True, text=True, check=False, timeout=60, cwd=ROOT)
    assert (done.returncode, "schedulerNam" in done.stderr, "Traceback" in done.stderr) == (2, True, False), done.stderr
