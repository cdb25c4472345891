"""`drakit controllers` as a process: against a server somewhere else, alone or as one of two replicas."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from drakit.client import CLAIMS, EVENTS, LEASES, PODS, Client
from tests.builders.manifests import by_template, pod, template
from tests.controllers.replicasets import replica_set
from tests.e2e.controllers import show
from tests.e2e.processes import ROOT, Running, apiserver, command, controllers
from tests.e2e.reached import PATIENCE, reached, until

GATES = ("--feature-gates", "AllAlpha=true,AllBeta=true")
HASTY = (
    "--leader-elect-lease-duration", "3", "--leader-elect-renew-deadline", "2", "--leader-elect-retry-period", "0.2",
)  # fmt: skip
MANAGER = "system:kube-controller-manager"
ACCOUNTS = "system:serviceaccount:kube-system:"


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Running]:
    """A server without controllers, which knows a controller manager by its token."""
    tokens = tmp_path / "tokens.csv"
    tokens.write_text(f"manager-token,{MANAGER},1\n")
    with apiserver(
        "--data-dir", str(tmp_path / "data"), "--token-auth-file", str(tokens),
        "--audit-log-path", str(tmp_path / "audit"), *GATES,
    ) as running:  # fmt: skip
        yield running


def is_recorded(name: str) -> Any:
    return lambda each: each.view.metadata.name == name and each.view.status.resource_claim_statuses


async def make_pod(client: Client, name: str) -> None:
    await client.create(pod(name, claims=[by_template()]))
    await until(client, PODS, is_recorded(name), namespace="default")


def test_claims_are_made_and_the_lease_is_given_back_in_the_end(alone: Running) -> None:
    with controllers(alone.kubeconfig, *GATES) as following:
        assert following.server == alone.url
        asyncio.run(_play_alone(alone))
        assert show(following.shown, "/healthz") == (200, "ok")
        assert show(following.shown, "/readyz") == (200, "ok")
        assert "[+]informers ok" in show(following.shown, "/readyz?verbose")[1]
        assert show(following.shown, "/nothing")[0] == 404
        figures = show(following.shown, "/metrics")[1].splitlines()
        assert 'leader_election_master_status{name="drakit-controllers"} 1.0' in figures
        assert 'resourceclaim_controller_creates_total{admin_access="false",status="success"} 1.0' in figures
        assert any(line.startswith('workqueue_adds_total{name="resource_claim"}') for line in figures)
    assert asyncio.run(_holder(alone)) == ""


async def _play_alone(alone: Running) -> None:
    async with reached(alone.kubeconfig) as client:
        await client.create(template())
        await make_pod(client, "p")


async def _holder(alone: Running) -> str | None:
    async with reached(alone.kubeconfig) as client:
        lease = await client.get(LEASES, "drakit-controllers", namespace="kube-system")
        found: str | None = lease.view.spec.holder_identity
        return found


def test_each_controller_acts_under_its_own_account_when_asked_to(alone: Running, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("manager-token")
    authority = alone.kubeconfig.parent / "pki" / "ca.crt"
    arguments = (
        "--port", "0", "--master", alone.url, "--token-file", str(token), "--certificate-authority", str(authority),
        "--use-service-account-credentials", *GATES,
    )  # fmt: skip
    started = command(*arguments, name="controllers")
    with subprocess.Popen(started, cwd=ROOT) as process:
        try:
            asyncio.run(_play_alone(alone))
        finally:
            process.terminate()
            assert process.wait(timeout=20) == 0
    lines = [json.loads(line) for line in (tmp_path / "audit").read_text().splitlines()]
    wrote = {
        (line["user"]["username"], line["objectRef"].get("resource"))
        for line in lines
        if line["verb"] == "create" and line["responseStatus"]["code"] == 201
    }
    assert (f"{ACCOUNTS}resource-claim-controller", "resourceclaims") in wrote
    assert (f"{ACCOUNTS}service-account-controller", "serviceaccounts") in wrote
    assert {resource for user, resource in wrote if user == MANAGER} == {"leases", "serviceaccounts"}
    refused = {
        (line["user"]["username"], line["requestURI"]) for line in lines if line["responseStatus"]["code"] == 403
    }
    assert refused == set()


def test_what_the_server_refuses_is_logged_without_being_asked_for(alone: Running, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("manager-token")
    authority = alone.kubeconfig.parent / "pki" / "ca.crt"
    arguments = (
        "--port", "0", "--master", alone.url, "--token-file", str(token), "--certificate-authority", str(authority),
        "-v", "0", *GATES,
    )  # fmt: skip
    started = command(*arguments, name="controllers")
    with (tmp_path / "log").open("w") as log, subprocess.Popen(started, cwd=ROOT, stderr=log) as process:
        try:
            asyncio.run(_play_refused(alone))
        finally:
            process.terminate()
            assert process.wait(timeout=20) == 0
    refused = f'User "{MANAGER}" cannot create resource "resourceclaims"'
    assert any("default/p" in line and refused in line for line in (tmp_path / "log").read_text().splitlines())


async def _play_refused(alone: Running) -> None:
    async with reached(alone.kubeconfig) as client:
        await client.create(template())
        await client.create(pod("p", claims=[by_template()]))
        await until(client, EVENTS, lambda each: each.view.reason == "FailedResourceClaimCreation", namespace="default")


@pytest.mark.slow
def test_a_leader_that_is_killed_in_the_middle_is_replaced_and_nothing_is_lost_or_made_twice(alone: Running) -> None:
    with controllers(alone.kubeconfig, *GATES, *HASTY, killed=True) as first:
        asyncio.run(_make_template(alone))
        with controllers(alone.kubeconfig, *GATES, *HASTY) as second:
            assert 'leader_election_master_status{name="drakit-controllers"} 0.0' in show(second.shown, "/metrics")[1]
            assert show(second.shown, "/readyz") == (200, "ok")
            asyncio.run(_kill_in_the_middle(alone, first.process))
            assert 'leader_election_master_status{name="drakit-controllers"} 1.0' in show(second.shown, "/metrics")[1]


async def _make_template(alone: Running) -> None:
    """The first replica leads when it has made a claim."""
    async with reached(alone.kubeconfig) as client:
        await client.create(template())
        await make_pod(client, "first")


async def _kill_in_the_middle(alone: Running, leader: subprocess.Popen[str]) -> None:
    async with reached(alone.kubeconfig) as client:
        await client.create(replica_set(12))
        await until(client, CLAIMS, lambda each: each.metadata.generate_name.startswith("web-"), namespace="default")
        leader.send_signal(signal.SIGKILL)
        await client.create(pod("last", claims=[by_template()]))
        async with asyncio.timeout(PATIENCE), client.watch(PODS, namespace="default", initial=True) as changes:
            recorded: set[str] = set()
            async for change in changes:
                if change.object is not None and change.object.view.status.resource_claim_statuses:
                    recorded.add(change.object.view.metadata.name)
                if len(recorded) == 14:
                    break
        pods = await client.list(PODS, namespace="default")
        claims = await client.list(CLAIMS, namespace="default")
        named = {each.view.status.resource_claim_statuses[0].resource_claim_name for each in pods}
        assert len(pods) == len(claims) == 14
        assert named == {each.metadata.name for each in claims}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--kubeconfig", "nowhere"], 2, "nowhere"),
        (["--master", "localhost:6443"], 2, "--master"),
        (["--master", "https://127.0.0.1:1", "--kubeconfig", "x"], 2, "--master"),
        (["--master", "https://127.0.0.1:1", "--client-certificate", "x"], 2, "--client-key"),
        (["--master", "https://127.0.0.1:1", "--token-file", "nowhere"], 2, "--token-file: "),
        (["--token-file", "x"], 2, "--master"),
        (["--master", "http://127.0.0.1:1", "--controllers", "nope"], 2, "unknown controller 'nope'"),
        (["--master", "http://127.0.0.1:1", "--controllers", "-namespace-controller"], 2, "no controller"),
        (["--master", "http://127.0.0.1:1", "--feature-gates", "Nope=true"], 2, "unrecognized feature gate: Nope"),
        (["--master", "http://127.0.0.1:1", "--leader-elect-renew-deadline", "20"], 2, "renew deadline"),
        (["--master", "http://127.0.0.1:1", "-v", "8"], 2, "-v"),
        (["--master", "http://127.0.0.1:1", "--bind-address", "203.0.113.1"], 3, "cannot listen on 203.0.113.1"),
    ],
)
def test_a_wrong_flag_is_a_message_and_no_traceback(arguments: list[str], code: int, said: str) -> None:
    started = command("--port", "0", *arguments, name="controllers")
    done = subprocess.run(started, capture_output=True, text=True, check=False, timeout=60, cwd=ROOT)
    assert (done.returncode, said in done.stderr, "Traceback" in done.stderr) == (code, True, False), done.stderr


@pytest.mark.slow
def test_a_server_that_does_not_answer_is_waited_for_and_then_named() -> None:
    started = command("--port", "0", "--master", "http://127.0.0.1:1", name="controllers")
    done = subprocess.run(started, capture_output=True, text=True, check=False, timeout=60, cwd=ROOT)
    assert done.returncode == 3
    assert "error: http://127.0.0.1:1 does not answer" in done.stderr


@pytest.mark.slow
def test_a_server_that_listens_and_says_nothing_is_given_up_on_as_soon() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        started = command("--port", "0", "--master", url, name="controllers")
        done = subprocess.run(started, capture_output=True, text=True, check=False, timeout=60, cwd=ROOT)
    assert done.returncode == 3
    assert f"error: {url} does not answer within 10 s" in done.stderr
