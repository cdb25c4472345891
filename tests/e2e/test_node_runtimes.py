"""`drakit node` on each runtime that runs something: a pod prints its device and reads its metadata."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
import pytest

from drakit.client import NODES, PODS, SLICES
from tests.e2e.nodemachine import (
    CLASSES,
    NODE,
    Machine,
    driver,
    gone,
    in_phase,
    log_of,
    make_claims,
    make_classes,
    node_cluster,
    of_driver,
    pod_with,
    prepared,
)
from tests.e2e.processes import ROOT, following
from tests.e2e.reached import reached, until
from tests.nodeagent.runtimes.tinyimage import make_root_file_system

SCRIPT = "env; cat /var/run/kubernetes.io/dra-device-attributes/resourceclaims/*/r/*; echo end; sleep 100"


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    with node_cluster(agent=False) as made:
        asyncio.run(make_classes(made))
        yield made


@contextmanager
def cri_server(base: Path) -> Iterator[str]:
    base.mkdir()
    started = [sys.executable, "-m", "tests.e2e.criprocess", str(base)]
    with subprocess.Popen(started, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().removeprefix("listening on ").strip()
        finally:
            process.terminate()


def _flags(runtime: str, root: Path, stack: ExitStack) -> tuple[str, ...]:
    if runtime == "crun":
        make_root_file_system(root / "images" / "tiny")
        return ("--image-dir", str(root / "images"))
    if runtime == "cri":
        return ("--container-runtime-endpoint", f"unix://{stack.enter_context(cri_server(root / 'cri'))}")
    return ()


@pytest.mark.parametrize("runtime", ["process", "crun", "cri"])
def test_a_pod_prints_its_device_and_reads_its_metadata_through_the_agent(machine: Machine, runtime: str) -> None:
    if runtime == "crun" and (shutil.which("crun") is None or os.geteuid() != 0):
        pytest.skip("crun is not installed, or this is not root")
    root = machine.root.parent / runtime
    (root / "cri" if runtime == "cri" else root).parent.mkdir(parents=True, exist_ok=True)

    async def run() -> None:
        async with reached(machine.server.kubeconfig) as client:
            await until(client, SLICES, of_driver(CLASSES["gpu"]), namespace="")
            await make_claims(client, runtime, "gpu")
            pod = pod_with(runtime, SCRIPT, "gpu")
            pod["spec"]["containers"][0] |= {"image": "tiny", "imagePullPolicy": "IfNotPresent"}
            await client.create(pod)
            await until(client, PODS, in_phase(runtime, "Running"), namespace="default")
            said = await log_of(client, runtime, "\nend")
            assert "GPU_DEVICE_0=gpu-" in said
            assert '"kind":"DeviceMetadata"' in said.replace(" ", "")
            node = await client.get(NODES, NODE)
            name = "containerd" if runtime == "cri" else runtime
            assert node.document["status"]["nodeInfo"]["containerRuntimeVersion"].startswith(f"{name}://")
            await client.delete(PODS, runtime, namespace="default")
            await gone(client, runtime)
            assert prepared(root) == 0

    with ExitStack() as stack:
        flags = _flags(runtime, root, stack)
        cdi = root / "cri" / "cdi" if runtime == "cri" else root / "cdi"
        cdi.mkdir(parents=True, exist_ok=True)
        if runtime == "cri":
            (root / "cdi").symlink_to(cdi)
        here = msgspec.structs.replace(machine, root=root)
        stack.enter_context(following("node", *here.agent(), "--runtime", runtime, *flags))
        stack.enter_context(driver(here, "gpu"))
        asyncio.run(run())
