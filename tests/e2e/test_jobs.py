"""The guide about jobs, command by command, with kubectl and a cluster whose nodes run pods; and certificates."""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509

from tests.apiserver.neighbours import neighbour, signing_request
from tests.docs.blocks import blocks
from tests.e2e.kubectl import KUBECTL, Kubectl
from tests.e2e.processes import ROOT, Running, apiserver

pytestmark = pytest.mark.skipif(KUBECTL is None, reason="needs kubectl")
GUIDE = "docs/guides/jobs.md"


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with apiserver("--data-dir", str(tmp_path_factory.mktemp("up")), "--nodes", "2", name="up") as running:
        yield running


@pytest.fixture
def kubectl(up: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kubectl:
    monkeypatch.chdir(ROOT)
    return Kubectl(up.kubeconfig, tmp_path)


def printed(kubectl: Kubectl, number: int) -> str:
    """What the commands of a block of the guide print."""
    lines = map(shlex.split, blocks(GUIDE, "console")[number].splitlines())
    return "".join(kubectl(*words[1:]) for words in lines)


def test_a_job_runs_a_pod_per_index_with_a_gpu_for_each(kubectl: Kubectl) -> None:
    told = printed(kubectl, 0)
    assert "condition met" in told
    assert "4/4" in told
    assert sorted(line.split("shard ")[1][0] for line in told.splitlines() if "shard" in line) == ["0", "1", "2", "3"]
    assert all("on gpu-" in line for line in told.splitlines() if "shard" in line)


def test_a_rule_about_failures_ends_a_job(kubectl: Kubectl) -> None:
    assert "failed with exit code 42 matching FailJob rule at index 0" in printed(kubectl, 1)


def test_a_cron_job_is_made_without_a_warning(kubectl: Kubectl) -> None:
    assert "30 2 * * *" in printed(kubectl, 2)


def test_a_job_is_held(kubectl: Kubectl) -> None:
    assert "condition met" in printed(kubectl, 3)


def test_a_drain_goes_by_the_budget(kubectl: Kubectl) -> None:
    told = printed(kubectl, 4)
    assert "node/node-1 drained" in told
    assert "inference" in told


def test_containers_get_the_defaults_of_their_namespace(kubectl: Kubectl) -> None:
    assert printed(kubectl, 5).endswith("1")


def test_a_certificate_is_approved_and_signed(kubectl: Kubectl) -> None:
    spec = {
        "request": signing_request("ann", ("team",)), "usages": ["client auth"],
        "signerName": "kubernetes.io/kube-apiserver-client",
    }  # fmt: skip
    kubectl("apply", "-f", "-", stdin=json.dumps(neighbour("certificatesigningrequests", spec=spec)))
    assert "Pending" in kubectl("get", "csr", "x")
    kubectl("certificate", "approve", "x")
    kubectl("wait", "--for=jsonpath={.status.conditions[0].type}=Approved", "csr/x", "--timeout=60s")
    answers = (kubectl("get", "csr", "x", "-o", "jsonpath={.status.certificate}") for _ in range(100))
    text = next(filter(None, answers))
    made = x509.load_pem_x509_certificate(base64.b64decode(text))
    assert made.subject.rfc4514_string() == "CN=ann,O=team"
