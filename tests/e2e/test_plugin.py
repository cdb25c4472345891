"""`kubectl dra`: kubectl finds the plugin on PATH and runs the tools; the manifest for krew has the right form."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import drakit
from drakit.cli.main import PLUGIN
from scripts.krew import FILES, checksum
from tests.e2e.kubectl import KUBECTL, Kubectl
from tests.e2e.processes import ROOT, Running, apiserver

MANIFEST = ROOT / "deploy" / "krew" / "dra.yaml"
needs_kubectl = pytest.mark.skipif(KUBECTL is None, reason="there is no kubectl on PATH")


@pytest.fixture(scope="module")
def up() -> Iterator[Running]:
    with apiserver("--ephemeral", name="up") as running:
        yield running


@pytest.fixture
def plugged(up: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kubectl:
    """With the two commands of the package on PATH, as pip would install them."""
    for name, function in (("kubectl-dra", "run_plugin"), ("kubectl_complete-dra", "complete_plugin")):
        script = tmp_path / name
        script.write_text(f"#!{sys.executable}\nfrom drakit.cli.main import {function}\n{function}()\n")
        script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return Kubectl(up.kubeconfig, tmp_path)


@needs_kubectl
def test_kubectl_runs_the_tools_on_its_own_cluster(plugged: Kubectl) -> None:
    assert "gpu.example.com" in plugged("dra", "devices", "--free")
    assert "kubectl dra [OPTIONS] COMMAND" in plugged("dra", "--help")


@needs_kubectl
def test_exit_codes_pass_through_kubectl(plugged: Kubectl) -> None:
    assert plugged.run("dra", "devices", "--by", "colour").returncode == 2
    assert plugged.run("dra", "devices", "--tainted").returncode == 1
    assert plugged.run("dra", "devices", KUBECONFIG="/nowhere").returncode == 3


@needs_kubectl
def test_kubectl_completes_commands_and_flags(plugged: Kubectl) -> None:
    assert plugged("__complete", "dra", "dev").splitlines()[0].startswith("devices")
    assert "--by" in plugged("__complete", "dra", "devices", "--b").split()


@needs_kubectl
def test_names_of_objects_namespaces_and_contexts_are_completed_from_the_cluster(plugged: Kubectl) -> None:
    plugged("create", "namespace", "team-a")
    plugged("run", "waits", "--image", "none", "-n", "team-a")
    assert "waits" in plugged("__complete", "dra", "explain", "-n", "team-a", "pod", "w").split()
    assert "team-a" in plugged("__complete", "dra", "explain", "-n", "team").split()
    assert "drakit" in plugged("__complete", "dra", "devices", "--context", "").split()


def test_the_plugin_offers_only_what_needs_a_cluster_that_is_there() -> None:
    assert not {"up", "demo", "apiserver", "scheduler", "controllers", "node", "driver"} & set(PLUGIN)


def test_the_manifest_has_the_form_that_krew_takes() -> None:
    manifest = yaml.safe_load(MANIFEST.read_text())
    assert (manifest["apiVersion"], manifest["kind"]) == ("krew.googlecontainertools.github.com/v1alpha2", "Plugin")
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", manifest["metadata"]["name"])
    spec = manifest["spec"]
    assert spec["version"] == f"v{drakit.__version__}"
    assert spec.keys() == {"version", "homepage", "shortDescription", "description", "caveats", "platforms"}
    assert len(spec["shortDescription"]) <= 50
    for platform in spec["platforms"]:
        assert platform.keys() == {"selector", "uri", "sha256", "bin", "files"}
        assert platform["uri"].startswith("https://")
        assert platform["sha256"] == checksum()
        assert {each["from"] for each in platform["files"]} == set(FILES)
        assert platform["bin"] == f"kubectl-{manifest['metadata']['name']}"


def test_the_launcher_of_krew_runs_the_package_or_says_what_is_missing(tmp_path: Path) -> None:
    launcher = str(FILES["kubectl-dra"][0])
    with_it = {"PATH": os.environ["PATH"], "DRAKIT_PYTHON": sys.executable}
    done = subprocess.run([launcher, "--version"], env=with_it, capture_output=True, text=True, check=True)
    assert done.stdout == f"drakit {drakit.__version__}\n"
    (tmp_path / "sh").symlink_to("/bin/sh")
    without = subprocess.run(
        ["/bin/sh", launcher, "devices"], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert without.returncode == 3
    assert "pip install drakit" in without.stderr
