"""The manifests under `deploy`: rendered by kubectl, taken by the server, and with rights that suffice."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e import upstream
from tests.e2e.processes import ROOT, Running, apiserver, following
from tests.e2e.upstream import wait_for

DEPLOY = ROOT / "deploy"
RENDERED = ("base", "overlays/as-default-scheduler", "overlays/with-controllers", "overlays/example-driver")
NODE = {"allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"}}


def kubectl(*arguments: str, stdin: str = "") -> str:
    """The one of `DRAKIT_KUBERNETES_BIN`, else that on PATH; one that knows kustomize well enough."""
    program = f"{upstream.FOLDER}/kubectl" if upstream.FOLDER else shutil.which("kubectl")
    if program is None:
        pytest.skip("there is no kubectl on PATH")
    told = subprocess.run([program, "version", "--client", "-o", "json"], capture_output=True, text=True, check=True)
    if int(re.sub(r"\D.*", "", json.loads(told.stdout)["clientVersion"]["minor"])) < 27:
        pytest.skip("needs kubectl 1.27 or newer")
    done = subprocess.run([program, *arguments], input=stdin, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stdout}{done.stderr}"
    return done.stdout


def rendered(place: str) -> str:
    return kubectl("kustomize", str(DEPLOY / place))


@pytest.mark.parametrize("place", RENDERED)
def test_what_is_rendered_is_taken_by_the_server(server: Running, place: str) -> None:
    told = kubectl("--kubeconfig", str(server.kubeconfig), "apply", "-f", "-", stdin=rendered(place))
    assert "deployment.apps/drakit-scheduler" in told
    arguments = ("get", "deployment", "drakit-scheduler", "-n", "drakit-system", "-o", "json")
    made = json.loads(kubectl("--kubeconfig", str(server.kubeconfig), *arguments))
    assert made["spec"]["template"]["spec"]["serviceAccountName"] == "drakit-scheduler"


def test_every_container_runs_a_command_of_drakit_with_flags_that_it_has() -> None:
    for file in DEPLOY.rglob("*.yaml"):
        for document in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            template = ((document or {}).get("spec") or {}).get("template") or {}
            for container in template.get("spec", {}).get("containers", ()):
                words = [each for each in container["args"] if not each.startswith("-")]
                command = ["driver", "run"] if words[0] == "driver" else words[:1]
                shown = subprocess.run(
                    [str(ROOT / ".venv/bin/drakit"), *command, "--help"], capture_output=True, text=True, check=True
                ).stdout  # fmt: skip
                for flag in (each.partition("=")[0] for each in container["args"] if each.startswith("--")):
                    assert flag in shown, f"{file}: {command} has no {flag}"


def test_the_rights_of_scheduler_and_controllers_suffice(tmp_path: Path) -> None:
    text = rendered("overlays/with-controllers")
    with apiserver("--data-dir", str(tmp_path / "data")) as server:
        as_admin = ("--kubeconfig", str(server.kubeconfig))
        kubectl(*as_admin, "apply", "-f", "-", stdin=text)
        config = tmp_path / "config.yaml"
        documents = [each for each in yaml.safe_load_all(text) if each["kind"] == "ConfigMap"]
        config.write_text(documents[0]["data"]["config.yaml"])
        flags = {name: _reached(server, tmp_path, name) for name in ("drakit-scheduler", "drakit-controllers")}
        chosen: str = next(
            flag
            for each in yaml.safe_load_all(text)
            if each["metadata"]["name"] == "drakit-controllers" and each["kind"] == "Deployment"
            for flag in each["spec"]["template"]["spec"]["containers"][0]["args"]
            if flag.startswith("--controllers=")
        )
        lease = "--leader-elect-resource-namespace=drakit-system"
        with (
            following("scheduler", *flags["drakit-scheduler"], "--config", str(config)),
            following("controllers", *flags["drakit-controllers"], chosen, lease),
        ):
            kubectl(
                *as_admin, "apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": OBJECTS})
            )
            kubectl(
                *as_admin,
                "patch",
                "node",
                "n1",
                "--subresource=status",
                "--type=merge",
                "-p",
                json.dumps({"status": NODE}),
            )
            kubectl(*as_admin, "patch", "node", "n1", "--type=merge", "-p", '{"spec":{"taints":null}}')
            asked = (*as_admin, "get", "pod", "p", "-o", "jsonpath={.spec.nodeName}")
            wait_for("the pod with a claim is bound", lambda: kubectl(*asked) == "n1")


def _reached(server: Running, directory: Path, account: str) -> list[str]:
    """Flags by which a component reaches the server as its own service account, as it would from a pod."""
    token = directory / account
    as_admin = ("--kubeconfig", str(server.kubeconfig))
    token.write_text(kubectl(*as_admin, "create", "token", account, "-n", "drakit-system"))
    ca = server.kubeconfig.parent / "pki" / "ca.crt"
    return [f"--master={server.url}", f"--token-file={token}", f"--certificate-authority={ca}"]


OBJECTS: list[dict[str, Any]] = [
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}},
    {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": {
        "driver": "gpu.example.com", "nodeName": "n1", "devices": [{"name": "gpu-0"}],
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1}}},
    {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}},
    {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
     "metadata": {"name": "one", "namespace": "default"},
     "spec": {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}}},
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}, "spec": {
        "schedulerName": "drakit", "containers": [{"name": "c", "image": "i"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}]}},
]  # fmt: skip


def test_the_containerfile_installs_as_the_makefile_does() -> None:
    """There is nothing here to build it with: its form is held, and that its steps are those of the repository."""
    lines = [line for line in (DEPLOY / "Containerfile").read_text().splitlines() if line and not line.startswith("#")]
    words = [line.split()[0] for line in lines]
    assert set(words) <= {"FROM", "WORKDIR", "COPY", "RUN", "USER", "ENTRYPOINT", "CMD"}
    assert words[0] == "FROM"
    for line in lines:
        if line.startswith("COPY ") and "--from" not in line:
            assert all((ROOT / source).exists() for source in line.split()[1:-1])
    install = next(line for line in lines if "pip install" in line)
    assert "-c constraints.txt" in install
    assert any(line.startswith("USER ") and "root" not in line for line in lines)
    assert json.loads(lines[words.index("ENTRYPOINT")].partition(" ")[2]) == ["/opt/venv/bin/drakit"]
