"""The crun runtime with real containers; skips without crun or the right to use it."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import signal
import tarfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from drakit.base.clock import RealClock
from drakit.nodeagent.runtimes.cdi import CdiRegistry
from drakit.nodeagent.runtimes.cgroups import Cgroups, cgroup_name
from drakit.nodeagent.runtimes.contract import (
    BindMount,
    ContainerLimits,
    ContainerState,
    ImageUnavailable,
    LimitsRefused,
    RuntimeRefusal,
    RuntimeUnsuitable,
)
from drakit.nodeagent.runtimes.crun import CrunRuntime
from drakit.nodeagent.runtimes.crun.images import ImageStore
from drakit.nodeagent.runtimes.supervised import records
from drakit.nodeagent.runtimes.supervised.records import RunningFile
from tests.nodeagent.runtimes.scene import end, find, on_loop, remove_all, run, shell, start, write_cdi, written

pytestmark = [
    pytest.mark.skipif(shutil.which("crun") is None, reason="crun is not installed"),
    pytest.mark.skipif(os.geteuid() != 0, reason="the crun runtime needs root"),
]


@asynccontextmanager
async def runtime_in(base: Path, root: Path, **changes: Any) -> AsyncIterator[CrunRuntime]:
    settings: dict[str, Any] = {
        "clock": RealClock(),
        "cdi": CdiRegistry([base / "cdi"]),
        "cgroups": Cgroups(cgroup_name("test", base)),
        "images": ImageStore(base / "images", table={"tiny": root}, root=base / "layouts"),
    }
    async with CrunRuntime(base / "runtime", **(settings | changes)) as runtime:
        try:
            yield runtime
        finally:
            await remove_all(runtime)


def tiny(script: str, **changes: Any) -> Any:
    return shell(script, **({"image": "tiny", "command": ["/bin/sh", "-c", script]} | changes))


@on_loop
async def test_a_real_container_runs_on_its_own_root(tmp_path: Path, root_file_system: Path) -> None:
    script = "echo $$; hostname; ls /; echo mine > /bin/new; cat /bin/new; exit 3"
    async with runtime_in(tmp_path, root_file_system) as runtime:
        info, text = await run(runtime, tmp_path, tiny(script))
        version = await runtime.version()
    lines = text.splitlines()
    assert (lines[0], lines[1], lines[-1]) == ("1", "web", "mine"), text
    assert "usr" not in lines or (root_file_system / "usr").exists()
    assert (info.exit_code, info.reason, info.image_ref) == (3, "Error", str(root_file_system))
    assert not (root_file_system / "bin" / "new").exists()
    assert (version.name, version.version[:2]) == ("crun", "1.")


@on_loop
async def test_without_an_overlay_the_image_is_copied(tmp_path: Path, root_file_system: Path) -> None:
    async with runtime_in(tmp_path, root_file_system) as runtime:
        runtime._has_overlay = False
        _, text = await run(runtime, tmp_path, tiny("echo mine > /new; cat /new"))
    assert text == "mine\n"
    assert not (root_file_system / "new").exists()


@on_loop
async def test_devices_are_applied(tmp_path: Path, root_file_system: Path) -> None:
    (tmp_path / "metadata.json").write_text('{"kind": "DeviceMetadata"}\n')
    metadata = "/var/run/kubernetes.io/dra-device-attributes/resourceclaims/c/gpu/vendor.com-metadata.json"
    edits = {
        "env": ["GPU=gpu-0"],
        "mounts": [{"hostPath": str(tmp_path / "metadata.json"), "containerPath": metadata, "options": ["ro", "bind"]}],
        "deviceNodes": [{"path": "/dev/gpu0", "hostPath": "/dev/null"}],
        "hooks": [{"hookName": "createRuntime", "path": "/bin/sh", "args": ["sh", "-c", f"cat > {tmp_path}/state"]}],
    }
    write_cdi(tmp_path, [{"name": "gpu-0", "containerEdits": edits}])
    async with runtime_in(tmp_path, root_file_system) as runtime:
        script = f"echo $GPU; cat {metadata}; echo x > /dev/gpu0 && echo device; echo x > {metadata} || echo read-only"
        info, text = await run(runtime, tmp_path, tiny(script, cdi_devices=["vendor.com/gpu=gpu-0"]))
    lines = [line for line in text.splitlines() if "annot create" not in line]
    assert lines == ["gpu-0", '{"kind": "DeviceMetadata"}', "device", "read-only"]
    assert info.id in (tmp_path / "state").read_text()


@on_loop
async def test_volumes_are_mounted(tmp_path: Path, root_file_system: Path) -> None:
    (tmp_path / "volume").mkdir()
    mounts = [
        BindMount(str(tmp_path / "volume"), "/data"),
        BindMount(str(tmp_path / "volume"), "/ro", read_only=True),
    ]
    async with runtime_in(tmp_path, root_file_system) as runtime:
        _, text = await run(
            runtime, tmp_path, tiny("echo hi > /data/f; cat /ro/f; echo x > /ro/g || echo no", mounts=mounts)
        )
    assert [line for line in text.splitlines() if "annot" not in line] == ["hi", "no"]


@on_loop
async def test_exec_stop_and_exit_codes(tmp_path: Path, root_file_system: Path) -> None:
    script = "trap 'exit 9' TERM; echo up; while :; do sleep 0.05; done"
    async with runtime_in(tmp_path, root_file_system) as runtime:
        container = await start(runtime, tmp_path, tiny(script, env={"A": "b"}))
        await written(runtime, container, "up")
        result = await runtime.exec_sync(container, ["/bin/sh", "-c", "echo $A; exit 5"])
        # crun tells the size a moment after the program's start.
        sized = 'while [ "$(stty size)" = "0 0" ]; do sleep 0.01; done; stty size'
        terminal = await runtime.exec(container, ["/bin/sh", "-c", sized], tty=True)
        size = await terminal.stdout.read()
        await terminal.close()
        await runtime.stop_container(container, grace=20)
        info = await find(runtime, container)
    assert (result.exit_code, result.stdout) == (5, b"b\n")
    assert size == b"24 80\r\n"
    assert (info.exit_code, info.reason) == (9, "Error")


@on_loop
async def test_a_container_sees_the_processes_of_its_target(tmp_path: Path, root_file_system: Path) -> None:
    async with runtime_in(tmp_path, root_file_system) as runtime:
        target = await start(runtime, tmp_path, tiny("exec sleep 1000"))
        looks = tiny("read -r line < /proc/1/comm; echo $line", target=target, name="debug", log_path="debug/0.log")
        assert (await run(runtime, tmp_path, looks))[1] == "sleep\n"
        await runtime.stop_container(target, grace=0)
        with pytest.raises(RuntimeRefusal, match='target container "main" does not run'):
            await start(runtime, tmp_path, looks)


@on_loop
async def test_a_container_that_ignores_the_request_is_killed(tmp_path: Path, root_file_system: Path) -> None:
    async with runtime_in(tmp_path, root_file_system) as runtime:
        container = await start(runtime, tmp_path, tiny("sleep 1000"))  # a first process without a handler
        await runtime.stop_container(container, grace=0.2)
        info = await find(runtime, container)
    assert (info.state, info.exit_code) == (ContainerState.EXITED, 137)


@on_loop
async def test_a_container_over_its_memory_is_killed_for_it(tmp_path: Path, root_file_system: Path) -> None:
    if Cgroups("test").version == 0:
        pytest.skip("no cgroups on this machine")
    limits = ContainerLimits(memory_bytes=16 << 20, cpu_quota=50_000, cpu_shares=512)
    async with runtime_in(tmp_path, root_file_system) as runtime:
        try:
            info, _ = await run(runtime, tmp_path, tiny("head -c 200m /dev/zero | tail -c 100m", limits=limits))
        except LimitsRefused as refusal:
            pytest.skip(str(refusal))
    assert info.reason == "OOMKilled", info
    left = list(Path("/sys/fs/cgroup").glob(f"*/drakit/test-{tmp_path.name}"))
    assert left == []


@on_loop
async def test_limits_are_refused_where_no_cgroup_may_be_made(tmp_path: Path, root_file_system: Path) -> None:
    nowhere = Cgroups("test", root=tmp_path / "none")
    async with runtime_in(tmp_path, root_file_system, cgroups=nowhere) as runtime:
        with pytest.raises(LimitsRefused, match="limits cannot be held: no cgroup may be made"):
            await start(runtime, tmp_path, tiny("true", limits=ContainerLimits(memory_bytes=1 << 30)))
        info, _ = await run(runtime, tmp_path, tiny("true", limits=ContainerLimits(cpu_shares=100)))
    assert info.exit_code == 0


@on_loop
async def test_the_next_agent_finds_a_container_that_runs(tmp_path: Path, root_file_system: Path) -> None:
    images = ImageStore(tmp_path / "images", table={"tiny": root_file_system})
    cdi, cgroups = CdiRegistry([tmp_path / "cdi"]), Cgroups("none", root=tmp_path / "none")
    first = CrunRuntime(tmp_path / "runtime", clock=RealClock(), cdi=cdi, cgroups=cgroups, images=images)
    async with first:
        container = await start(first, tmp_path, tiny("sleep 1000"))
    async with runtime_in(tmp_path, root_file_system) as second:
        assert (await find(second, container)).state is ContainerState.RUNNING
        result = await second.exec_sync(container, ["/bin/sh", "-c", "echo here"])
        assert result.stdout == b"here\n"
        await second.stop_container(container, grace=0.2)
        assert (await find(second, container)).exit_code == 137


@on_loop
async def test_a_container_without_its_shim_is_ended(tmp_path: Path, root_file_system: Path) -> None:
    async with runtime_in(tmp_path, root_file_system) as runtime:
        container = await start(runtime, tmp_path, tiny("sleep 1000"))
        directory = tmp_path / "runtime" / "containers" / container
        names = records.read(directory / "running.json", RunningFile)
        inner = int((directory / "pid").read_text())
        assert names is not None
        os.kill(names.shim.pid, signal.SIGKILL)
        info = await end(runtime, container)
        assert info.reason == "ContainerStatusUnknown"
    assert not Path(f"/proc/{inner}/exe").exists()


@on_loop
async def test_a_program_that_is_not_in_the_image_is_refused(tmp_path: Path, root_file_system: Path) -> None:
    async with runtime_in(tmp_path, root_file_system) as runtime:
        with pytest.raises(RuntimeRefusal, match="crun: executable file `/bin/no-such` not found") as refusal:
            await start(runtime, tmp_path, tiny("", command=["/bin/no-such"]))
        (info,) = await runtime.containers()
    assert refusal.value.reason == "RunContainerError"
    assert (info.state, info.exit_code) == (ContainerState.EXITED, 1)


def oci_layout(path: Path, root: Path, config: dict[str, Any]) -> None:
    """A layout of two layers: the second removes one file and adds another."""

    def blob(content: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        (path / "blobs" / "sha256" / digest).write_bytes(content)
        return {"digest": f"sha256:{digest}", "size": len(content)}

    (path / "blobs" / "sha256").mkdir(parents=True)
    base, top = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=base, mode="w:gz", compresslevel=1) as archive:
        archive.add(root, arcname=".")
        _add(archive, "old", b"old")
    with tarfile.open(fileobj=top, mode="w") as archive:
        _add(archive, ".wh.old", b"")
        _add(archive, "new", b"new\n")
    layers = [blob(base.getvalue()), blob(top.getvalue())]
    manifest = {"schemaVersion": 2, "config": blob(json.dumps({"config": config}).encode()), "layers": layers}
    entry = blob(json.dumps(manifest).encode())
    (path / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    (path / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [entry]}))


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


@on_loop
async def test_an_oci_layout_is_unpacked_and_its_settings_hold(tmp_path: Path, root_file_system: Path) -> None:
    settings = {
        "Entrypoint": ["/bin/sh", "-c"],
        "Cmd": ["ls /old; cat /new; echo $FROM_IMAGE; ls -ln /proc/self/status"],
        "Env": ["FROM_IMAGE=yes"],
        "User": "app",
    }
    oci_layout(tmp_path / "layouts" / "example.com" / "tool", root_file_system, settings)
    async with runtime_in(tmp_path, root_file_system) as runtime:
        info, text = await run(runtime, tmp_path, shell("", command=[], image="example.com/tool:v1"))
    missing, new, env, owner = text.splitlines()
    assert "/old" in missing
    assert (new, env) == ("new", "yes")
    assert owner.split()[2:4] == ["1234", "1235"]
    assert info.image_ref.startswith("sha256:")


@on_loop
async def test_images_that_are_not_there_or_no_image_are_told(tmp_path: Path, root_file_system: Path) -> None:
    broken = tmp_path / "layouts" / "broken"
    broken.mkdir(parents=True)
    (broken / "oci-layout").write_text("{}")
    async with runtime_in(tmp_path, root_file_system) as runtime:
        with pytest.raises(ImageUnavailable, match='image "nginx:1" is not on this node'):
            await runtime.ensure_image("nginx:1")
        with pytest.raises(RuntimeRefusal) as refusal:
            await runtime.ensure_image("nginx:1", pull_policy="Never")
        assert refusal.value.reason == "ErrImageNeverPull"
        with pytest.raises(RuntimeRefusal, match=r'image "broken": the OCI layout .* cannot be used'):
            await runtime.ensure_image("broken")
        with pytest.raises(RuntimeRefusal, match='neither it nor its image "tiny" has a command'):
            await start(runtime, tmp_path, tiny("", command=[]))


@on_loop
async def test_a_machine_without_crun_is_told_what_to_do(tmp_path: Path, root_file_system: Path) -> None:
    with pytest.raises(RuntimeUnsuitable, match="there is no program no-crun on this machine; install crun"):
        async with runtime_in(tmp_path, root_file_system, program="no-crun"):
            pass
