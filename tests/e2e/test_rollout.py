"""`kubectl rollout` on Deployments and DaemonSets: status, history, undo, restart, pause; a pod per node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.kubectl import KUBECTL, Kubectl, modern
from tests.e2e.processes import apiserver

pytestmark = pytest.mark.skipif(KUBECTL is None, reason="there is no kubectl on PATH")

NODES = 3
DEPLOYMENT, DAEMON_SET = "deployment/web", "daemonset/agent"


def workload(kind: str, name: str) -> Any:
    labels = {"app": name}
    container = {"name": "main", "image": "one", "command": ["serve"]}
    pods = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": labels}, "template": pods, **({"replicas": 4} if kind == "Deployment" else {})}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    place = tmp_path_factory.mktemp("rollout")
    inventory = place / "cluster.yaml"
    inventory.write_text(yaml.safe_dump({"nodes": [{"count": NODES}]}))
    with apiserver("--ephemeral", "--cluster", str(inventory), name="up") as running:
        made = Kubectl(running.kubeconfig, place)
        documents = [workload("Deployment", "web"), workload("DaemonSet", "agent")]
        made("apply", "-f", "-", stdin=yaml.safe_dump_all(documents))
        for each in (DEPLOYMENT, DAEMON_SET):
            finished(made, each)
        yield made


def finished(kubectl: Kubectl, what: str) -> str:
    said = kubectl("rollout", "status", what, "--timeout", "50s")
    assert "successfully rolled out" in said
    return said


def images(kubectl: Kubectl, app: str) -> list[str]:
    """Of the pods that are there to stay."""
    pods = kubectl.object("pods", "-l", f"app={app}")["items"]
    return [each["spec"]["containers"][0]["image"] for each in pods if "deletionTimestamp" not in each["metadata"]]


def revisions(kubectl: Kubectl, what: str) -> list[str]:
    lines = kubectl("rollout", "history", what).splitlines()[2:]
    return [line.split()[0] for line in lines if line.strip()]


@pytest.mark.parametrize(("what", "app", "count"), [(DEPLOYMENT, "web", 4), (DAEMON_SET, "agent", NODES)])
def test_an_update_is_rolled_out_told_and_undone_by_its_history(
    kubectl: Kubectl, what: str, app: str, count: int
) -> None:
    assert images(kubectl, app) == ["one"] * count
    first = revisions(kubectl, what)
    kubectl("set", "image", what, "main=two")
    finished(kubectl, what)
    assert images(kubectl, app) == ["two"] * count
    assert len(revisions(kubectl, what)) == len(first) + 1
    assert "Image:\ttwo" in kubectl("rollout", "history", what, f"--revision={revisions(kubectl, what)[-1]}")
    kubectl("rollout", "undo", what, f"--to-revision={first[-1]}")
    finished(kubectl, what)
    assert images(kubectl, app) == ["one"] * count
    assert first[-1] not in revisions(kubectl, what), "what is rolled back to becomes the newest revision"


@pytest.mark.parametrize(("what", "app"), [(DEPLOYMENT, "web"), (DAEMON_SET, "agent")])
def test_a_restart_replaces_every_pod(kubectl: Kubectl, what: str, app: str) -> None:
    def uids() -> set[str]:
        return {each["metadata"]["uid"] for each in kubectl.object("pods", "-l", f"app={app}")["items"]}

    before = uids()
    kubectl("rollout", "restart", what)
    finished(kubectl, what)
    alive = {
        each["metadata"]["uid"]
        for each in kubectl.object("pods", "-l", f"app={app}")["items"]
        if "deletionTimestamp" not in each["metadata"]
    }
    assert not alive & before


def test_a_paused_deployment_waits_and_goes_on_when_it_is_resumed(kubectl: Kubectl) -> None:
    kubectl("rollout", "pause", DEPLOYMENT)
    kubectl("set", "image", DEPLOYMENT, "main=three")
    assert "three" not in images(kubectl, "web")
    assert "paused" in kubectl("get", DEPLOYMENT, "-o", "jsonpath={.status.conditions[*].reason}").lower()
    kubectl("rollout", "resume", DEPLOYMENT)
    finished(kubectl, DEPLOYMENT)
    assert images(kubectl, "web") == ["three"] * 4


@modern
def test_a_daemon_set_has_one_pod_on_every_node_and_follows_nodes_that_come_and_go(
    kubectl: Kubectl, tmp_path: Path
) -> None:
    def homes() -> list[str]:
        pods = kubectl.object("pods", "-l", "app=agent")["items"]
        return sorted(each["spec"]["nodeName"] for each in pods if "deletionTimestamp" not in each["metadata"])

    names = sorted(each["metadata"]["name"] for each in kubectl.object("nodes")["items"])
    assert homes() == names
    late = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "late"}}
    path = tmp_path / "node.yaml"
    path.write_text(yaml.safe_dump(late))
    kubectl("apply", "-f", str(path))
    kubectl(
        "wait", "daemonset/agent", f"--for=jsonpath={{.status.desiredNumberScheduled}}={NODES + 1}", "--timeout=30s"
    )
    kubectl("delete", "node", "late")
    kubectl("wait", "daemonset/agent", f"--for=jsonpath={{.status.desiredNumberScheduled}}={NODES}", "--timeout=30s")
