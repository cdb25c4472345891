"""Clients of other languages and makers reach a cluster of the fixture by its kubeconfig."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kubernetes import client, config, watch

from drakit.client import CLAIMS
from drakit.testing import LocalCluster
from tests.e2e.kubectl import Kubectl
from tests.testing.gpuprocess import CLAIM, POD


def test_kubectl_applies_waits_and_deletes(dra_cluster: LocalCluster, tmp_path: Path) -> None:
    kubectl = Kubectl(dra_cluster.kubeconfig(), tmp_path)
    for document in (CLAIM, POD):
        made = kubectl.run("apply", "-f", "-", stdin=str(document).replace("'", '"'))
        assert made.returncode == 0, made.stderr
    waited = kubectl.run("wait", "--for=condition=Ready", "pod/train", "--timeout=30s")
    assert waited.returncode == 0, waited.stderr
    assert kubectl.run("delete", "pod", "train", "--timeout=30s").returncode == 0
    dra_cluster.wait_until(lambda: not dra_cluster.allocations(), "the device is free again")


def test_the_python_client_watches_a_pod_until_it_runs(dra_cluster: LocalCluster) -> None:
    configuration = client.Configuration()
    load: Any = config.load_kube_config
    load(str(dra_cluster.kubeconfig()), client_configuration=configuration)
    with client.ApiClient(configuration) as made:
        core: Any = client.CoreV1Api(made)
        custom = client.CustomObjectsApi(made)
        custom.create_namespaced_custom_object("resource.k8s.io", "v1", "default", "resourceclaims", CLAIM)
        core.create_namespaced_pod("default", POD)
        phases = []
        new_watch: Any = watch.Watch
        stream = new_watch()
        for event in stream.stream(core.list_namespaced_pod, "default", timeout_seconds=30):
            phases.append(event["object"].status.phase)
            if phases[-1] == "Running":
                stream.stop()
    assert phases[-1] == "Running"
    assert dra_cluster.get(CLAIMS, "gpu").status.reserved_for[0].name == "train"
