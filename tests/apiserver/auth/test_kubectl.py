"""Rights as kubectl's users meet them: `--as`, `auth can-i`, `create token`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.kubectl import Kubectl, modern
from tests.e2e.processes import apiserver


@pytest.mark.slow
@modern
def test_kubectl_acts_as_others_asks_what_it_may_and_makes_tokens(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    with apiserver("--ephemeral", "--aggregate-roles", "--audit-log-path", str(log)) as running:
        kubectl = Kubectl(running.kubeconfig, tmp_path)
        assert "system:masters" in kubectl("auth", "whoami")
        assert "forbidden" in kubectl.refused("get", "resourceclaims", "--as", "alice").lower()
        kubectl("create", "rolebinding", "team", "--clusterrole=edit", "--group=dev")
        assert kubectl("auth", "can-i", "create", "resourceclaims", "--as", "alice", "--as-group", "dev") == "yes\n"
        assert "resourceclaims" in kubectl("auth", "can-i", "--list", "--as", "alice", "--as-group", "dev")
        kubectl("create", "serviceaccount", "bot")
        token = kubectl("create", "token", "bot", "--duration=20m").strip()
        kubectl("create", "role", "reader", "--verb=list", "--resource=resourceclaims.resource.k8s.io")
        kubectl("create", "rolebinding", "reader", "--role=reader", "--serviceaccount=default:bot")
        assert (
            kubectl("auth", "can-i", "list", "resourceclaims", "--as", "system:serviceaccount:default:bot") == "yes\n"
        )
    assert token not in log.read_text()
    assert '"impersonatedUser":{"username":"alice"' in log.read_text()
