"""What users do with workloads: Go's controllers on drakit's API server, drakit's controllers on an upstream one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.builders.etcd import etcd_cluster
from tests.e2e import upstream
from tests.e2e.processes import apiserver, controllers, following
from tests.e2e.upstream import kubectl, shown, wait_for
from tests.e2e.upstreamcluster import NODE, POD, nodes_of_pods, play_kubelet, prepare, states_of_claims

pytestmark = pytest.mark.timeout(900)
WEB = ("-l", "app=web")
JOB: dict[str, Any] = {
    "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"},
    "spec": {"template": {"spec": {**POD["spec"], "restartPolicy": "Never"}}},
}  # fmt: skip
DAEMONS: dict[str, Any] = {
    "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "ds"},
    "spec": {
        "selector": {"matchLabels": {"app": "ds"}},
        "template": {"metadata": {"labels": {"app": "ds"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    },
}  # fmt: skip


@contextmanager
def go_controllers_on_drakit(directory: Path) -> Iterator[Path]:
    upstream.binary("kubectl")
    with apiserver("--data-dir", str(directory / "data")) as made:
        kubeconfig = made.kubeconfig
        with upstream.controller_manager(directory, kubeconfig), upstream.scheduler(directory, kubeconfig):
            yield kubeconfig


@contextmanager
def drakits_controllers_on_upstream(directory: Path) -> Iterator[Path]:
    upstream.binary("kube-apiserver")
    with etcd_cluster(directory) as members, upstream.apiserver(directory, members[0].client) as kubeconfig:
        scheduler = following("scheduler", "--kubeconfig", str(kubeconfig))
        with controllers(kubeconfig, "--use-service-account-credentials"), scheduler:
            yield kubeconfig


def images(kubeconfig: Path) -> list[str]:
    """Of the pods of the Deployment that are there to stay and run."""
    play_kubelet(kubeconfig, *WEB)
    pods = [each for each in shown(kubeconfig, "pods", *WEB)["items"] if not each["metadata"].get("deletionTimestamp")]
    return [each["spec"]["containers"][0]["image"] for each in pods if each["status"]["phase"] == "Running"]


@pytest.mark.parametrize("mixture", [go_controllers_on_drakit, drakits_controllers_on_upstream])
def test_rollouts_budgets_jobs_and_namespaces_work(mixture: Any, tmp_path: Path) -> None:
    with mixture(tmp_path) as kubeconfig:
        prepare(kubeconfig)
        wait_for("the account of pods", lambda: bool(shown(kubeconfig, "serviceaccount", "default")))
        roll_out_and_back(kubeconfig)
        refuse_an_eviction(kubeconfig)
        run_a_job_with_a_claim(kubeconfig)
        kubectl(kubeconfig, "apply", "-f", "-", stdin=json.dumps(DAEMONS))
        wait_for("the daemon is bound", lambda: nodes_of_pods(kubeconfig, "-l", "app=ds") == [NODE])
        delete_a_namespace(kubeconfig)


def roll_out_and_back(kubeconfig: Path) -> None:
    kubectl(kubeconfig, "create", "deployment", "web", "--image=a", "--replicas=2")
    wait_for("the first rollout", lambda: images(kubeconfig) == ["a", "a"])
    kubectl(kubeconfig, "set", "image", "deployment/web", "a=b")
    wait_for("the second rollout", lambda: images(kubeconfig) == ["b", "b"])
    kubectl(kubeconfig, "rollout", "status", "deployment/web", "--timeout=50s")
    kubectl(kubeconfig, "rollout", "undo", "deployment/web")
    wait_for("the way back", lambda: images(kubeconfig) == ["a", "a"])


def refuse_an_eviction(kubeconfig: Path) -> None:
    kubectl(kubeconfig, "create", "pdb", "b", "--selector=app=web", "--min-available=2")
    wait_for("its status", lambda: shown(kubeconfig, "pdb", "b")["status"].get("currentHealthy") == 2)
    kubectl(kubeconfig, "drain", NODE, "--timeout=3s", "--ignore-daemonsets", "--force", check=False)
    kubectl(kubeconfig, "uncordon", NODE)
    assert images(kubeconfig) == ["a", "a"]


def run_a_job_with_a_claim(kubeconfig: Path) -> None:
    selection = ("-l", "job-name=j")
    kubectl(kubeconfig, "apply", "-f", "-", stdin=json.dumps(JOB))
    wait_for("its pod is bound", lambda: nodes_of_pods(kubeconfig, *selection) == [NODE])
    assert states_of_claims(kubeconfig) == [True]
    (pod,) = shown(kubeconfig, "pods", *selection)["items"]
    done = ("--subresource=status", "--type=merge", "-p", '{"status":{"phase":"Succeeded"}}')
    kubectl(kubeconfig, "patch", "pod", pod["metadata"]["name"], *done)
    wait_for("the job is done", lambda: shown(kubeconfig, "job", "j")["status"].get("succeeded") == 1)
    wait_for("its claim is released", lambda: not any(states_of_claims(kubeconfig)))
    kubectl(kubeconfig, "delete", "job", "j", "--wait=false")
    wait_for("its claim is gone", lambda: not shown(kubeconfig, "resourceclaims")["items"])


def delete_a_namespace(kubeconfig: Path) -> None:
    kubectl(kubeconfig, "create", "namespace", "gone")
    kubectl(kubeconfig, "-n", "gone", "create", "deployment", "d", "--image=i")
    wait_for("a pod is there", lambda: bool(shown(kubeconfig, "pods", "-n", "gone")["items"]))
    kubectl(kubeconfig, "delete", "namespace", "gone", "--wait=false")

    def is_gone() -> bool:
        play_kubelet(kubeconfig, "-n", "gone")
        return not shown(kubeconfig, "namespace", "gone")

    wait_for("the namespace is gone", is_gone)
