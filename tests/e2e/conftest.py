"""One server process for all tests of this folder, and a namespace for each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.kubectl import KUBECTL, Kubectl
from tests.e2e.processes import Running, apiserver


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    data = tmp_path_factory.mktemp("data")
    with apiserver("--data-dir", str(data), "--feature-gates", "AllAlpha=true,AllBeta=true") as running:
        yield running


@pytest.fixture(scope="session")
def kubectl(server: Running, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    if KUBECTL is None:
        pytest.skip("there is no kubectl on PATH")
    return Kubectl(server.kubeconfig, tmp_path_factory.mktemp("home"))


@pytest.fixture
def team(kubectl: Kubectl, request: pytest.FixtureRequest) -> str:
    """A namespace named after the test; `create namespace` sends protobuf."""
    name: str = request.node.name.removeprefix("test_").replace("_", "-")[:60].strip("-").lower()
    assert kubectl("create", "namespace", name) == f"namespace/{name} created\n"
    return name
