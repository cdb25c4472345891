"""`drakit up` as a process: the API server and the controllers, each controller with rights of its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from drakit.client import CLAIMS, CONFIG_MAPS, PODS, Forbidden
from tests.builders.loop import on_loop
from tests.builders.manifests import by_template, claim, pod, pod_group, template
from tests.e2e.processes import ROOT, Running, apiserver
from tests.e2e.reached import PATIENCE, reached, until

ACCOUNTS = "system:serviceaccount:kube-system:"


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    place = tmp_path_factory.mktemp("up")
    with apiserver("--data-dir", str(place), "--audit-log-path", str(place / "audit"), name="up") as running:
        yield running


@on_loop
async def make_pod(running: Running, name: str) -> None:
    async with reached(running.kubeconfig) as client:
        await client.create(template(f"{name}-t"))
        await client.create(pod(name, claims=[by_template(name=f"{name}-t")]))
        found = await until(
            client,
            PODS,
            lambda each: each.view.metadata.name == name and each.view.status.resource_claim_statuses,
            namespace="default",
        )
        [status] = found.view.status.resource_claim_statuses
        made = await client.get(CLAIMS, status.resource_claim_name, namespace="default")
        assert made.metadata.controller is not None
        assert made.metadata.controller.uid == found.view.metadata.uid
        assert found.view.spec.service_account_name == "default"


def test_a_pod_gets_its_claim_made_by_the_account_of_that_controller(up: Running) -> None:
    make_pod(up, "p")
    audited = map(json.loads, (up.kubeconfig.parent / "audit").read_text().splitlines())
    makers = {
        line["user"]["username"]
        for line in audited
        if line["verb"] == "create" and (line.get("objectRef") or {}).get("resource") == "resourceclaims"
    }
    assert makers == {f"{ACCOUNTS}resource-claim-controller"}


@pytest.mark.parametrize(
    ("account", "document"),
    [
        ("replicaset-controller", claim("c")),
        ("resource-claim-controller", pod("not-mine")),
        ("namespace-controller", pod("not-mine")),
        ("node-controller", claim("c")),
    ],
)
@on_loop
async def test_a_controller_is_refused_what_is_another_ones(up: Running, account: str, document: Any) -> None:
    async with reached(up.kubeconfig, acting_as=f"{ACCOUNTS}{account}") as client:
        with pytest.raises(Forbidden, match=f'User "{ACCOUNTS}{account}" cannot create resource'):
            await client.create(document)


@on_loop
async def test_the_identity_that_fills_the_caches_may_not_write(up: Running) -> None:
    async with reached(up.kubeconfig, acting_as="system:kube-controller-manager") as client:
        await client.list(CLAIMS)
        with pytest.raises(Forbidden):
            await client.create(claim("c"))


def test_what_pods_request_is_on_the_page_that_a_scheduler_has_for_it(up: Running) -> None:
    make_pod(up, "requesting")
    page = asyncio.run(figures(up, "/metrics/resources"))
    assert "# TYPE kube_pod_resource_request gauge" in page
    assert "# TYPE kube_pod_resource_limit gauge" in page


def test_figures_of_the_controllers_are_on_the_servers_page(up: Running) -> None:
    make_pod(up, "counted")
    lines = asyncio.run(figures(up)).splitlines()
    assert any(line.startswith('workqueue_adds_total{name="resource_claim"}') for line in lines)
    assert any(line.startswith("resourceclaim_controller_creates_total") for line in lines)
    assert any(line.startswith("apiserver_request_total") for line in lines)


async def figures(running: Running, path: str = "/metrics") -> str:
    async with reached(running.kubeconfig) as client:
        return await client.text(path)


@on_loop
async def test_pods_of_every_namespace_know_the_server_by_its_authority(up: Running) -> None:
    async with reached(up.kubeconfig) as client:
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "fresh"}})
        found = await until(
            client, CONFIG_MAPS, lambda each: each.view.metadata.name == "kube-root-ca.crt", namespace="fresh"
        )
    assert found.view.data["ca.crt"] == (up.kubeconfig.parent / "pki" / "ca.crt").read_text()


@on_loop
async def test_a_pod_may_come_right_after_its_namespace(up: Running) -> None:
    async with reached(up.kubeconfig) as client:
        for number in range(20):
            await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"new-{number}"}})
            soon = pod("p")
            soon["metadata"]["namespace"] = f"new-{number}"
            assert (await client.create(soon)).view.spec.service_account_name == "default"


@on_loop
async def test_every_gate_is_on_and_aggregated_roles_are_filled(up: Running) -> None:
    async with reached(up.kubeconfig) as client:
        made = await client.create(pod_group("g", [by_template()]))
        assert len(made.spec.resource_claims) == 1
        view = await client.document("/apis/rbac.authorization.k8s.io/v1/clusterroles/view")
        assert any("resourceclaims" in rule.get("resources", ()) for rule in view["rules"])


@on_loop
async def _delete(running: Running, name: str) -> None:
    async with reached(running.kubeconfig) as client:
        await client.delete(PODS, name, namespace="default", grace=0)
        async with asyncio.timeout(PATIENCE), client.watch(CLAIMS, namespace="default", initial=True) as changes:
            left = {each.metadata.name for each in await client.list(CLAIMS, namespace="default")}
            async for change in changes:
                if change.type == "DELETED" and change.object is not None:
                    left.discard(change.object.metadata.name)
                if not left:
                    return


def test_what_was_begun_before_a_restart_goes_on_after_it(tmp_path: Path) -> None:
    with apiserver("--data-dir", str(tmp_path), name="up") as first:
        make_pod(first, "kept")
    with apiserver("--data-dir", str(tmp_path), name="up") as second:
        _delete(second, "kept")


def test_a_kubeconfig_is_written_where_it_is_wanted(tmp_path: Path) -> None:
    wanted = tmp_path / "kubeconfig"
    with apiserver("--ephemeral", "--kubeconfig", str(wanted), name="up") as running:
        assert running.kubeconfig == wanted
        assert yaml.safe_load(wanted.read_text())["clusters"][0]["cluster"]["server"] == running.url


def test_make_up_runs_it() -> None:
    assert "drakit up --ephemeral" in (ROOT / "Makefile").read_text()
