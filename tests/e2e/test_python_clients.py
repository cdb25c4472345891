"""Other Python clients do their basics: kr8s, lightkube, and an operator with kopf. Each is a program of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config

from tests.e2e.processes import Running

PROGRAMS = Path(__file__).parent / "clients"
CLAIMS = {"group": "resource.k8s.io", "version": "v1", "namespace": "default", "plural": "resourceclaims"}
CLAIM: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
    "metadata": {"name": "kopf", "labels": {"seen-by": "kopf"}},
    "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
}  # fmt: skip


@pytest.mark.parametrize("name", ["with_kr8s", "with_lightkube"])
def test_a_client_does_its_basics(server: Running, name: str) -> None:
    environment = {**os.environ, "KUBECONFIG": str(server.kubeconfig)}
    command = [sys.executable, "-W", "ignore", str(PROGRAMS / f"{name}.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr


def test_an_operator_with_kopf_sees_a_claim_and_labels_it(server: Running, tmp_path: Path) -> None:
    load: Any = config.new_client_from_config
    with load(str(server.kubeconfig)) as made:
        api: Any = client.CustomObjectsApi(made)
        api.create_namespaced_custom_object(**CLAIMS, body=CLAIM)
        operator = str(PROGRAMS / "operator_with_kopf.py")
        command = [sys.executable, "-m", "kopf", "run", "--standalone", "--namespace=default", operator]
        environment = {**os.environ, "KUBECONFIG": str(server.kubeconfig)}
        with (tmp_path / "log").open("wb") as log:
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            until = time.monotonic() + 60
            while not _is_labelled(api):
                assert time.monotonic() < until, (tmp_path / "log").read_text()
                time.sleep(0.2)
        finally:
            process.terminate()
            process.wait(timeout=30)


def _is_labelled(api: Any) -> bool:
    found = api.get_namespaced_custom_object(**CLAIMS, name="kopf")
    return bool(found["metadata"]["labels"].get("kopf") == "done")
