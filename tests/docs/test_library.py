"""The front door: its names, that it opens quickly, and the examples of docs/library.md."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import drakit
from drakit.base.errors import UsageError
from drakit.client import CLASSES, Client, load_kubeconfig
from drakit.client.transport.http import Http
from tests.docs.blocks import ROOT, blocks

NAMES = [
    "FeatureGates",
    "__version__",
    "allocate",
    "compile_selector",
    "explain_pod",
    "lint_manifests",
    "read_manifests",
    "start_server",
    "try_selector",
    "validate_manifests",
    "what_if",
]


def test_the_public_names_are_these() -> None:
    assert dir(drakit) == drakit.__all__ == NAMES
    assert all(getattr(drakit, name) for name in NAMES)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        drakit.nonsense  # noqa: B018


def test_no_public_name_is_hidden_by_a_room() -> None:
    rooms = {path.stem for path in (ROOT / "src" / "drakit").iterdir()}
    assert not rooms & set(NAMES)


def test_importing_the_package_imports_no_room() -> None:
    code = "import sys, drakit; drakit.__version__; print([name for name in sys.modules if name.startswith('drakit.')])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


def test_the_document_describes_every_name() -> None:
    text = (ROOT / "docs" / "library.md").read_text()
    assert [name for name in NAMES if name not in text and name != "__version__"] == []


def test_the_examples_of_the_document_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    scope: dict[str, Any] = {}
    for block in blocks("docs/library.md", "python"):
        exec(compile(block, "docs/library.md", "exec"), scope)
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "6 slices"
    assert told[1].startswith("README.md: line ")
    assert told[2] == "node-b ('training', 'gpus', 'gpu.example.com/node-b/gpu-1')"
    assert any("in use by claim" in line for line in told)
    assert told[-3:] == ["0 warnings", "['gpu']", "node-a"]


def test_a_path_that_cannot_be_read_is_a_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        drakit.lint_manifests(tmp_path / "nothing.yaml")


def test_a_server_on_a_port_is_reached_by_its_kubeconfig_keeps_its_data_and_leaves_no_task(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with drakit.start_server(data_dir=tmp_path, port=0) as plane:
            assert plane.kubeconfig is not None
            async with Client(Http(load_kubeconfig([plane.kubeconfig], ""))) as client:
                await client.create(
                    {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}}
                )
        async with drakit.start_server(data_dir=tmp_path, controllers=True, scheduler=True) as plane:
            assert [each.metadata.name for each in (await plane.client.list(CLASSES)).items] == ["gpu"]
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(scenario())
