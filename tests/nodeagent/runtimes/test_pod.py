"""One pod on every runtime that runs something: from its document to what its container prints."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from drakit.base.clock import RealClock
from drakit.base.errors import DrakitError
from drakit.nodeagent.containers.config import ContainerSettings, container_config, log_directory
from drakit.nodeagent.containers.documents import identity
from drakit.nodeagent.containers.fieldrefs import NodeFacts
from drakit.nodeagent.containers.volumes import VolumeStore
from drakit.nodeagent.runtimes.cdi import CdiRegistry
from drakit.nodeagent.runtimes.cgroups import Cgroups
from drakit.nodeagent.runtimes.contract import Runtime, SandboxConfig
from drakit.nodeagent.runtimes.cri import CriRuntime
from drakit.nodeagent.runtimes.crun import CrunRuntime, ImageStore
from tests.nodeagent.containers.pods import Objects
from tests.nodeagent.runtimes.criserver import CriServer
from tests.nodeagent.runtimes.scene import (
    end,
    on_loop,
    output,
    process_runtime,
    remove_all,
    shell,
    start,
    write_cdi,
    written,
)

METADATA = "/var/run/kubernetes.io/dra-device-attributes/resourceclaimtemplates/gpu/req/gpu.example.com-metadata.json"
SCRIPT = (
    f"echo device $GPU; cat {METADATA}; echo mode $MODE of $POD; cat /etc/settings/color; cat /scratch/none || :; "
    "echo kept > /scratch/file; echo goodbye > /dev/termination-log; exit $CODE"
)
DOCUMENT: dict[str, Any] = {
    "metadata": {"name": "train", "namespace": "ml", "uid": "0c9e"},
    "spec": {
        "volumes": [
            {"name": "settings", "configMap": {"name": "settings"}},
            {"name": "scratch", "emptyDir": {}},
        ],
        "containers": [
            {
                "name": "main",
                "image": "tiny",
                "command": ["/bin/sh", "-c"],
                "args": [SCRIPT],
                "env": [
                    {"name": "MODE", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "mode"}}},
                    {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                    {"name": "CODE", "value": "7"},
                ],
                "volumeMounts": [
                    {"name": "settings", "mountPath": "/etc/settings", "readOnly": True},
                    {"name": "scratch", "mountPath": "/scratch"},
                ],
            }
        ],
    },
}


@asynccontextmanager
async def runtime_named(name: str, base: Path, image: Path) -> AsyncIterator[Runtime]:
    if name == "process":
        async with process_runtime(base) as process:
            yield process
            await remove_all(process)
    elif name == "cri":
        async with CriServer(base) as server, CriRuntime(str(server.socket), clock=RealClock()) as cri:
            yield cri
    else:
        cdi, cgroups = CdiRegistry([base / "cdi"]), Cgroups("none", root=base / "none")
        images = ImageStore(base / "images", table={"tiny": image})
        async with CrunRuntime(base / "runtime", clock=RealClock(), cdi=cdi, cgroups=cgroups, images=images) as crun:
            yield crun
            await remove_all(crun)


@pytest.mark.parametrize("name", ["process", "crun", "cri"])
@on_loop
async def test_a_pod_prints_its_device_and_reads_its_metadata(
    tmp_path: Path, root_file_system: Path, name: str
) -> None:
    if name == "crun" and (shutil.which("crun") is None or os.geteuid() != 0):
        pytest.skip("crun is not installed, or this is not root")
    (tmp_path / "metadata.json").write_text('{"kind": "DeviceMetadata"}\n')
    mount = {"hostPath": str(tmp_path / "metadata.json"), "containerPath": METADATA, "options": ["ro", "bind"]}
    write_cdi(tmp_path, [{"name": "gpu-0", "containerEdits": {"env": ["GPU=gpu-0"], "mounts": [mount]}}])
    objects = Objects(config_maps={"settings": {"mode": b"fast", "color": b"blue\n"}})
    volumes = VolumeStore(tmp_path / "pods", objects=objects, clock=RealClock())
    paths = await volumes.set_up(DOCUMENT, NodeFacts())
    settings = ContainerSettings(node=NodeFacts(), volumes=paths, pod_directory=tmp_path / "pods" / "0c9e")
    (subject,) = DOCUMENT["spec"]["containers"]
    async with runtime_named(name, tmp_path, root_file_system) as runtime:
        logs = log_directory(tmp_path / "logs", identity(DOCUMENT))
        sandbox = await runtime.run_sandbox(SandboxConfig(identity(DOCUMENT), log_directory=str(logs)))
        ids = ["vendor.com/gpu=gpu-0"]
        config = await container_config(DOCUMENT, subject, settings=settings, objects=objects, cdi_devices=ids)
        container = await runtime.create_container(sandbox, config)
        await runtime.start_container(container)
        info = await end(runtime, container)
        lines = [line for line in output(info).splitlines() if "/scratch/none" not in line]
    assert lines == ["device gpu-0", '{"kind": "DeviceMetadata"}', "mode fast of train", "blue"]
    assert (info.exit_code, info.reason) == (7, "Error")
    assert info.log_path == str(tmp_path / "logs" / "ml_train_0c9e" / "main" / "0.log")
    assert (paths["scratch"] / "file").read_text() == "kept\n"
    assert info.message == "goodbye\n"


@pytest.mark.parametrize("name", ["process", "crun", "cri"])
@on_loop
async def test_what_a_container_takes_is_measured(name: str, tmp_path: Path, root_file_system: Path) -> None:
    if name == "crun" and (shutil.which("crun") is None or os.geteuid() != 0):
        pytest.skip("crun is not installed, or may not be used")
    script = "d=0123456789abcdef; i=0; while [ $i -lt 19 ]; do d=$d$d; i=$((i+1)); done; echo ready; sleep 1000"
    async with runtime_named(name, tmp_path, root_file_system) as runtime:
        config = shell(script, image="tiny", log_path="main/0.log")
        container = await start(runtime, tmp_path, config)
        await written(runtime, container, "ready")
        usage = await runtime.usage(container)
        assert 8 * 1024 * 1024 <= usage.memory_bytes < 1024**3
        assert usage.disk_bytes > 0
        await runtime.stop_container(container, grace=1)
        with pytest.raises(DrakitError):
            await runtime.usage(container)
